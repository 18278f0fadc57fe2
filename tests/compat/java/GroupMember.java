import java.io.BufferedReader;
import java.io.InputStreamReader;
import java.time.Duration;
import java.util.Collection;
import java.util.List;
import java.util.Map;
import java.util.Properties;
import java.util.Queue;
import java.util.TreeMap;
import java.util.TreeSet;
import java.util.concurrent.ConcurrentLinkedQueue;
import java.util.regex.Pattern;
import org.apache.kafka.clients.consumer.ConsumerRebalanceListener;
import org.apache.kafka.clients.consumer.ConsumerRecord;
import org.apache.kafka.clients.consumer.KafkaConsumer;
import org.apache.kafka.clients.consumer.OffsetAndMetadata;
import org.apache.kafka.common.TopicPartition;

/**
 * A member of a group that tells all that befalls it, as group_member.py does of the Python clients.
 *
 * GroupMember TOPICS key=value…    topics are separated by commas; one that begins with ^ is a pattern
 */
public class GroupMember implements ConsumerRebalanceListener {
    private static final long COMMIT_EVERY_NS = 50_000_000;
    private static final String PATTERN = "org.apache.kafka.clients.consumer.SubscriptionPattern";
    private static final boolean KNOWS_PATTERNS = knowsPatterns();

    private final KafkaConsumer<byte[], byte[]> consumer;
    private final Map<TopicPartition, Long> positions = new java.util.HashMap<>();
    private final Map<TopicPartition, Long> committed = new java.util.HashMap<>();

    private GroupMember(Properties config) {
        consumer = new KafkaConsumer<>(config);
    }

    public static void main(String[] words) throws Exception {
        Properties config = new Properties();
        String deserializer = "org.apache.kafka.common.serialization.ByteArrayDeserializer";
        config.put("key.deserializer", deserializer);
        config.put("value.deserializer", deserializer);
        config.put("enable.auto.commit", "false");
        config.put("metadata.max.age.ms", "500");
        config.put("fetch.max.wait.ms", "50");
        config.put("reconnect.backoff.max.ms", "500");
        for (int i = 1; i < words.length; i++) {
            String[] pair = words[i].split("=", 2);
            config.put(pair[0], pair[1]);
        }
        GroupMember member = new GroupMember(config);
        member.subscribe(words[0], "consumer".equals(config.get("group.protocol")));
        member.live();
    }

    private void subscribe(String topics, boolean isResolvedByBroker) throws Exception {
        if (!topics.startsWith("^")) {
            consumer.subscribe(List.of(topics.split(",")), this);
        } else if (isResolvedByBroker && KNOWS_PATTERNS) {
            Class<?> kind = Class.forName(PATTERN);
            Object pattern = kind.getConstructor(String.class).newInstance(topics);
            KafkaConsumer.class.getMethod("subscribe", kind, ConsumerRebalanceListener.class)
                .invoke(consumer, pattern, this);
        } else {
            consumer.subscribe(Pattern.compile(topics), this);
        }
    }

    /** Since 4.0 a consumer can leave the matching to the broker. */
    private static boolean knowsPatterns() {
        try {
            return Class.forName(PATTERN) != null;
        } catch (ClassNotFoundException before_4_0) {
            return false;
        }
    }

    private void live() {
        Queue<String[]> commands = new ConcurrentLinkedQueue<>();
        Thread reader = new Thread(() -> read(commands));
        reader.setDaemon(true);
        reader.start();
        for (long nextCommit = 0; ; ) {
            for (String[] words = commands.poll(); words != null; words = commands.poll()) {
                if (words[0].equals("leave")) {
                    commit(consumer.assignment());
                    consumer.close();
                    say(System.nanoTime(), "left");
                    return;
                }
                TopicPartition where = new TopicPartition(words[1], Integer.parseInt(words[2]));
                consumer.seek(where, Long.parseLong(words[3]));
            }
            for (ConsumerRecord<byte[], byte[]> record : consumer.poll(Duration.ofMillis(50))) {
                TopicPartition where = new TopicPartition(record.topic(), record.partition());
                positions.put(where, record.offset() + 1);
                say(System.nanoTime(), "record " + name(where) + " " + record.offset());
            }
            if (System.nanoTime() >= nextCommit) {
                commit(consumer.assignment());
                nextCommit = System.nanoTime() + COMMIT_EVERY_NS;
            }
        }
    }

    private static void read(Queue<String[]> commands) {
        try (BufferedReader input = new BufferedReader(new InputStreamReader(System.in))) {
            for (String line = input.readLine(); line != null; line = input.readLine()) {
                commands.add(line.split(" "));
            }
        } catch (java.io.IOException gone) {
            // The same as its end.
        }
        commands.add(new String[] {"leave"});
    }

    private void commit(Collection<TopicPartition> places) {
        Map<TopicPartition, OffsetAndMetadata> due = new TreeMap<>(GroupMember::compare);
        for (TopicPartition place : places) {
            Long position = positions.get(place);
            if (position != null && !position.equals(committed.get(place))) {
                due.put(place, new OffsetAndMetadata(position));
            }
        }
        if (due.isEmpty()) {
            return;
        }
        long began = System.nanoTime();
        try {
            consumer.commitSync(due, Duration.ofSeconds(5));
        } catch (RuntimeException refusal) {
            say(System.nanoTime(), "refused " + refusal.getClass().getSimpleName());
            return;
        }
        StringBuilder line = new StringBuilder("committed");
        due.forEach((place, offset) -> {
            committed.put(place, offset.offset());
            line.append(' ').append(name(place)).append('=').append(offset.offset());
        });
        say(began, line.toString());
    }

    @Override
    public void onPartitionsAssigned(Collection<TopicPartition> places) {
        say(System.nanoTime(), "assigned " + consumer.groupMetadata().generationId() + names(places));
    }

    @Override
    public void onPartitionsRevoked(Collection<TopicPartition> places) {
        commit(places);
        forget(places);
        say(System.nanoTime(), "revoked" + names(places));
    }

    @Override
    public void onPartitionsLost(Collection<TopicPartition> places) {
        forget(places);
        say(System.nanoTime(), "lost" + names(places));
    }

    private void forget(Collection<TopicPartition> places) {
        positions.keySet().removeAll(places);
        committed.keySet().removeAll(places);
    }

    private static void say(long moment, String what) {
        System.out.println(moment + " " + what);
    }

    private static String names(Collection<TopicPartition> places) {
        TreeSet<TopicPartition> sorted = new TreeSet<>(GroupMember::compare);
        sorted.addAll(places);
        StringBuilder names = new StringBuilder();
        sorted.forEach(place -> names.append(' ').append(name(place)));
        return names.toString();
    }

    private static String name(TopicPartition place) {
        return place.topic() + ":" + place.partition();
    }

    private static int compare(TopicPartition one, TopicPartition other) {
        int byTopic = one.topic().compareTo(other.topic());
        return byTopic != 0 ? byTopic : Integer.compare(one.partition(), other.partition());
    }
}
