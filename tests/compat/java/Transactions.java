import java.time.Duration;
import java.util.ArrayList;
import java.util.Collections;
import java.util.List;
import java.util.Map;
import java.util.Properties;
import java.util.concurrent.ExecutionException;
import org.apache.kafka.clients.admin.Admin;
import org.apache.kafka.clients.admin.NewTopic;
import org.apache.kafka.clients.consumer.ConsumerRecord;
import org.apache.kafka.clients.consumer.KafkaConsumer;
import org.apache.kafka.clients.consumer.OffsetAndMetadata;
import org.apache.kafka.clients.producer.KafkaProducer;
import org.apache.kafka.clients.producer.ProducerRecord;
import org.apache.kafka.common.KafkaException;
import org.apache.kafka.common.TopicPartition;

/**
 * Scenarios of transactions for every version of kafka-clients since 2.5; each prints what came out.
 *
 * Transactions BOOTSTRAP PREFIX SCENARIO…    names of topics, groups and ids begin with the prefix
 */
public class Transactions {
    private static final long DEADLINE_MS = 30_000;
    private static final String STRING = "org.apache.kafka.common.serialization.String";
    private static String bootstrap;
    private static String prefix;

    interface Step {
        void run() throws Exception;
    }

    public static void main(String[] words) throws Exception {
        bootstrap = words[0];
        for (int i = 2; i < words.length; i++) {
            prefix = words[1] + "-" + words[i];
            switch (words[i]) {
                case "outcomes" -> outcomes();
                case "open" -> open();
                case "fence" -> fence();
                case "timeout" -> timeout();
                case "recover" -> recover();
                case "transform" -> transform();
                default -> throw new IllegalArgumentException(words[i]);
            }
        }
    }

    /** Aborted records are hidden from one isolation level, and the next transaction is not. */
    private static void outcomes() throws Exception {
        String topic = topic("t");
        try (KafkaProducer<String, String> producer = producer(60_000)) {
            producer.initTransactions();
            for (int i = 0; i < 3; i++) {
                producer.beginTransaction();
                producer.send(new ProducerRecord<>(topic, "aborted-" + i)).get();
                producer.abortTransaction();
                producer.beginTransaction();
                producer.send(new ProducerRecord<>(topic, "kept-" + i));
                producer.commitTransaction();
            }
            producer.beginTransaction();
            producer.commitTransaction();
            producer.beginTransaction();
            producer.abortTransaction();
        }
        say("committed", values(topic, "read_committed", 3));
        say("uncommitted", values(topic, "read_uncommitted", 6));
    }

    /** What ListOffsets and a consumer see of a transaction that is open. */
    private static void open() throws Exception {
        String topic = topic("t");
        try (KafkaProducer<String, String> producer = producer(60_000)) {
            producer.initTransactions();
            producer.beginTransaction();
            producer.send(new ProducerRecord<>(topic, "a")).get();
            say("ends while open", end(topic, "read_committed"), end(topic, "read_uncommitted"));
            say("seen while open", values(topic, "read_committed", 0));
            producer.commitTransaction();
        }
        say("seen after", values(topic, "read_committed", 1));
        say("ends after", end(topic, "read_committed"), end(topic, "read_uncommitted"));
    }

    /** A second producer of the same id; the first fails wherever it goes on. */
    private static void fence() throws Exception {
        String topic = topic("t");
        String[] names = {"send", "commit", "abort", "offsets"};
        for (String name : names) {
            prefix = prefix + "-" + name;
            try (KafkaProducer<String, String> zombie = producer(60_000);
                    KafkaProducer<String, String> heir = producer(60_000)) {
                zombie.initTransactions();
                zombie.beginTransaction();
                zombie.send(new ProducerRecord<>(topic, "lost-" + name)).get();
                heir.initTransactions();
                heir.beginTransaction();
                heir.send(new ProducerRecord<>(topic, "kept-" + name));
                heir.commitTransaction();
                attempt(name, () -> {
                    switch (name) {
                        case "send" -> zombie.send(new ProducerRecord<>(topic, "never")).get();
                        case "commit" -> zombie.commitTransaction();
                        case "abort" -> zombie.abortTransaction();
                        default -> zombie.sendOffsetsToTransaction(
                            Collections.singletonMap(new TopicPartition(topic, 0), new OffsetAndMetadata(1)),
                            new org.apache.kafka.clients.consumer.ConsumerGroupMetadata(topic + "-group"));
                    }
                });
            }
        }
        say("committed", values(topic, "read_committed", names.length));
    }

    /** A transaction that is open for longer than its producer allowed. */
    private static void timeout() throws Exception {
        String topic = topic("t");
        try (KafkaProducer<String, String> producer = producer(300)) {
            producer.initTransactions();
            producer.beginTransaction();
            producer.send(new ProducerRecord<>(topic, "late")).get();
            for (long end = System.currentTimeMillis() + DEADLINE_MS; end(topic, "read_committed") < 2; ) {
                if (System.currentTimeMillis() > end) {
                    throw new IllegalStateException("the transaction was not aborted");
                }
                Thread.sleep(20);
            }
            attempt("commit", producer::commitTransaction);
        }
        say("committed", values(topic, "read_committed", 0));
    }

    /** After a failed batch a producer aborts and goes on, with sequences that begin anew. */
    private static void recover() throws Exception {
        String topic = topic("t");
        try (KafkaProducer<String, String> producer = producer(60_000)) {
            producer.initTransactions();
            for (int i = 0; i < 3; i++) {
                producer.beginTransaction();
                producer.send(new ProducerRecord<>(topic, "aborted-" + i)).get();
                attempt("too old", () ->
                    producer.send(new ProducerRecord<>(topic, null, 1L, null, "x")).get());
                try {
                    producer.commitTransaction();
                    say("commit", "done");
                } catch (KafkaException refused) {  // of which class depends on the moment
                    say("commit", "refused");
                }
                producer.abortTransaction();
                producer.beginTransaction();
                producer.send(new ProducerRecord<>(topic, "kept-" + i));
                producer.commitTransaction();
            }
        }
        say("committed", values(topic, "read_committed", 3));
    }

    /** Consume, transform, produce: aborted rounds are done again, and each record comes out once. */
    private static void transform() throws Exception {
        String source = topic("source");
        String target = topic("target");
        Properties plain = config();
        try (KafkaProducer<String, String> feeder = new KafkaProducer<>(plain)) {
            for (int i = 0; i < 40; i++) {
                feeder.send(new ProducerRecord<>(source, "r" + i));
            }
        }
        int round = 0;
        TopicPartition partition = new TopicPartition(source, 0);
        try (KafkaProducer<String, String> producer = producer(60_000)) {
            producer.initTransactions();
            for (long done = 0; done < 40; round++) {
                try (KafkaConsumer<String, String> consumer = consumer("read_committed", prefix + "-group", 20)) {
                    consumer.subscribe(Collections.singletonList(source));
                    long next = done;
                    List<ConsumerRecord<String, String>> records = poll(consumer);
                    producer.beginTransaction();
                    for (ConsumerRecord<String, String> record : records) {
                        producer.send(new ProducerRecord<>(target, record.value() + "!"));
                        next = record.offset() + 1;
                    }
                    Map<TopicPartition, OffsetAndMetadata> offsets =
                        Collections.singletonMap(partition, new OffsetAndMetadata(next));
                    producer.sendOffsetsToTransaction(offsets, consumer.groupMetadata());
                    if (round % 2 == 0) {
                        producer.abortTransaction();
                    } else {
                        producer.commitTransaction();
                        done = next;
                    }
                }
            }
        }
        say("transformed", values(target, "read_committed", 40));
        try (KafkaConsumer<String, String> consumer = consumer("read_committed", prefix + "-group", 20)) {
            say("offset", consumer.committed(Collections.singleton(partition)).get(partition).offset());
        }
    }

    // --- parts ---

    private static Properties config() {
        Properties config = new Properties();
        config.put("bootstrap.servers", bootstrap);
        config.put("key.serializer", STRING + "Serializer");
        config.put("value.serializer", STRING + "Serializer");
        config.put("key.deserializer", STRING + "Deserializer");
        config.put("value.deserializer", STRING + "Deserializer");
        return config;
    }

    private static KafkaProducer<String, String> producer(int timeoutMs) {
        Properties config = config();
        config.put("transactional.id", prefix + "-id");
        config.put("transaction.timeout.ms", timeoutMs);
        return new KafkaProducer<>(config);
    }

    private static KafkaConsumer<String, String> consumer(String isolation, String group, int records) {
        Properties config = config();
        config.put("isolation.level", isolation);
        config.put("auto.offset.reset", "earliest");
        config.put("enable.auto.commit", "false");
        config.put("max.poll.records", records);
        if (group != null) {
            config.put("group.id", group);
        }
        return new KafkaConsumer<>(config);
    }

    private static String topic(String name) throws Exception {
        String topic = prefix + "-" + name;
        try (Admin admin = Admin.create(config())) {
            Map<String, String> limit =
                Collections.singletonMap("message.timestamp.before.max.ms", "3600000");
            admin.createTopics(Collections.singleton(new NewTopic(topic, 1, (short) 1).configs(limit))).all().get();
        }
        return topic;
    }

    private static long end(String topic, String isolation) {
        TopicPartition partition = new TopicPartition(topic, 0);
        try (KafkaConsumer<String, String> consumer = consumer(isolation, null, 500)) {
            return consumer.endOffsets(Collections.singleton(partition)).get(partition);
        }
    }

    private static List<String> values(String topic, String isolation, int count) {
        List<String> found = new ArrayList<>();
        try (KafkaConsumer<String, String> consumer = consumer(isolation, null, 500)) {
            consumer.assign(Collections.singleton(new TopicPartition(topic, 0)));
            consumer.seekToBeginning(consumer.assignment());
            long end = System.currentTimeMillis() + DEADLINE_MS;
            while (found.size() < count && System.currentTimeMillis() < end) {
                consumer.poll(Duration.ofMillis(200)).forEach(record -> found.add(record.value()));
            }
            consumer.poll(Duration.ofMillis(200)).forEach(record -> found.add(record.value()));
        }
        return found;
    }

    private static List<ConsumerRecord<String, String>> poll(KafkaConsumer<String, String> consumer) {
        List<ConsumerRecord<String, String>> found = new ArrayList<>();
        for (long end = System.currentTimeMillis() + DEADLINE_MS; found.isEmpty(); ) {
            consumer.poll(Duration.ofMillis(200)).forEach(found::add);
            if (System.currentTimeMillis() > end) {
                throw new IllegalStateException("no records came");
            }
        }
        return found;
    }

    private static void attempt(String what, Step step) {
        try {
            step.run();
            say(what, "done");
        } catch (ExecutionException failure) {
            say(what, failure.getCause().getClass().getSimpleName());
        } catch (Exception failure) {
            say(what, failure.getClass().getSimpleName());
        }
    }

    private static void say(String what, Object... found) {
        StringBuilder line = new StringBuilder(what).append(":");
        for (Object each : found) {
            line.append(' ').append(each instanceof List<?> list ? String.join(" ", (List<String>) list) : each);
        }
        System.out.println(line.toString());
    }
}
