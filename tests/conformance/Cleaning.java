import java.io.File;
import java.lang.reflect.Proxy;
import java.nio.file.Files;
import java.util.Optional;
import java.util.Properties;
import org.apache.kafka.common.utils.Time;
import org.apache.kafka.server.util.KafkaScheduler;
import org.apache.kafka.storage.internals.log.*;
import org.apache.kafka.storage.internals.utils.Throttler;
import org.apache.kafka.storage.log.metrics.BrokerTopicStats;

/**
 * Has Apache Kafka's own cleaner go once over partitions: a file names on each line the directory
 * and the first dirty offset; the second argument is what time it is.
 */
public class Cleaning {
    public static void main(String[] arguments) throws Exception {
        long nowMs = Long.parseLong(arguments[1]);
        Time time = (Time) Proxy.newProxyInstance(Cleaning.class.getClassLoader(), new Class[] {Time.class},
            (proxy, method, given) -> method.getName().equals("milliseconds") ? (Object) nowMs
                : method.invoke(Time.SYSTEM, given));
        KafkaScheduler scheduler = new KafkaScheduler(1);
        scheduler.startup();
        for (String line : Files.readAllLines(new File(arguments[0]).toPath())) {
            String[] words = line.split(" ");
            UnifiedLog log = open(new File(words[0]), scheduler, time);
            long end = log.activeSegment().baseOffset();
            cleaner(time).clean(new LogToClean(log, Long.parseLong(words[1]), end, false));
            log.close();
        }
        System.exit(0);
    }

    private static Cleaner cleaner(Time time) throws Exception {
        Throttler none = new Throttler(Double.MAX_VALUE, 300, "cleaner-io", "bytes", Time.SYSTEM);
        return new Cleaner(0, new SkimpyOffsetMap(1 << 20, "MD5"), 64 << 10, 1 << 20, 0.9, none, time,
            partition -> { });
    }

    private static UnifiedLog open(File directory, KafkaScheduler scheduler, Time time) throws Exception {
        Properties settings = new Properties();
        settings.put("cleanup.policy", "compact");
        return UnifiedLog.create(directory, new LogConfig(settings), 0, Long.MAX_VALUE, scheduler,
            new BrokerTopicStats(), time, 900_000, new ProducerStateManagerConfig(86_400_000, false),
            600_000, new LogDirFailureChannel(1), true, Optional.empty());
    }
}
