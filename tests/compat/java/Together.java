import java.io.BufferedReader;
import java.io.InputStreamReader;
import java.time.Duration;
import java.util.Collection;
import java.util.List;
import java.util.Map;
import java.util.Properties;
import java.util.concurrent.ConcurrentHashMap;
import org.apache.kafka.clients.consumer.ConsumerRebalanceListener;
import org.apache.kafka.clients.consumer.KafkaConsumer;
import org.apache.kafka.common.TopicPartition;

/**
 * Consumers of many groups in one JVM, each in a thread, moved by lines on the input:
 *
 * open NAME BOOTSTRAP GROUP PROTOCOL TOPIC    answered by `opened NAME`: it is connected
 * subscribe NAME                              told by `holds NAME COUNT` at each assignment
 * close NAME                                  answered by `closed NAME`
 */
public class Together implements Runnable, ConsumerRebalanceListener {
    private static final String DESERIALIZER =
        "org.apache.kafka.common.serialization.ByteArrayDeserializer";

    private final String name;
    private final String topic;
    private final KafkaConsumer<byte[], byte[]> consumer;
    private volatile boolean isSubscribed;
    private volatile boolean isOver;

    private Together(String[] words) {
        name = words[1];
        topic = words[5];
        Properties config = new Properties();
        config.put("bootstrap.servers", words[2]);
        config.put("group.id", words[3]);
        config.put("group.protocol", words[4]);
        config.put("key.deserializer", DESERIALIZER);
        config.put("value.deserializer", DESERIALIZER);
        consumer = new KafkaConsumer<>(config);
    }

    public static void main(String[] none) throws Exception {
        Map<String, Together> members = new ConcurrentHashMap<>();
        BufferedReader lines = new BufferedReader(new InputStreamReader(System.in));
        for (String line; (line = lines.readLine()) != null; ) {
            String[] words = line.split(" ");
            if (words[0].equals("open")) {
                Together member = new Together(words);
                members.put(member.name, member);
                new Thread(member).start();
            } else if (words[0].equals("subscribe")) {
                members.get(words[1]).isSubscribed = true;
            } else {
                members.remove(words[1]).isOver = true;
            }
        }
        System.exit(0);
    }

    @Override
    public void run() {
        consumer.partitionsFor(topic);
        say("opened " + name);
        while (!isSubscribed && !isOver) {
            sleep();
        }
        if (isSubscribed) {
            consumer.subscribe(List.of(topic), this);
        }
        while (!isOver) {
            consumer.poll(Duration.ofMillis(50));
        }
        consumer.close();
        say("closed " + name);
    }

    @Override
    public void onPartitionsAssigned(Collection<TopicPartition> added) {
        say("holds " + name + " " + consumer.assignment().size());
    }

    @Override
    public void onPartitionsRevoked(Collection<TopicPartition> gone) {
    }

    private static void sleep() {
        try {
            Thread.sleep(1);
        } catch (InterruptedException stop) {
            throw new IllegalStateException(stop);
        }
    }

    private static synchronized void say(String line) {
        System.out.println(line);
        System.out.flush();
    }
}
