import java.io.File;
import java.util.Optional;
import org.apache.kafka.common.utils.Time;
import org.apache.kafka.server.util.KafkaScheduler;
import org.apache.kafka.storage.internals.log.*;
import org.apache.kafka.storage.internals.utils.Throttler;
import org.apache.kafka.storage.log.metrics.BrokerTopicStats;

/** Has Apache Kafka's own cleaner go over copies of a partition's directory; prints seconds for each. */
public class Cleaning {
    public static void main(String[] directories) throws Exception {
        KafkaScheduler scheduler = new KafkaScheduler(1);
        scheduler.startup();
        for (String directory : directories) {
            UnifiedLog log = open(new File(directory), scheduler);
            Cleaner cleaner = cleaner();
            LogToClean dirt = new LogToClean(log, 0, log.activeSegment().baseOffset(), false);
            long before = log.size();
            long started = System.nanoTime();
            cleaner.clean(dirt);
            double seconds = (System.nanoTime() - started) / 1e9;
            System.out.printf("%d %d %.6f%n", before, log.size(), seconds);
            System.out.flush();
            log.close();
        }
        System.exit(0);
    }

    /** With the defaults of a broker: 128 MB for keys, buffers of 512 KB, one thread. */
    private static Cleaner cleaner() throws Exception {
        Throttler none = new Throttler(Double.MAX_VALUE, 300, "cleaner-io", "bytes", Time.SYSTEM);
        return new Cleaner(0, new SkimpyOffsetMap(128 << 20, "MD5"), 256 << 10, 1 << 20, 0.9, none,
            Time.SYSTEM, partition -> { });
    }

    private static UnifiedLog open(File directory, KafkaScheduler scheduler) throws Exception {
        java.util.Properties settings = new java.util.Properties();
        settings.put("cleanup.policy", "compact");
        settings.put("segment.bytes", System.getProperty("segment.bytes"));
        return UnifiedLog.create(directory, new LogConfig(settings), 0, Long.MAX_VALUE, scheduler,
            new BrokerTopicStats(), Time.SYSTEM, 900_000,
            new ProducerStateManagerConfig(86_400_000, false), 600_000, new LogDirFailureChannel(1),
            true, Optional.empty());
    }
}
