import java.lang.reflect.Method;
import java.nio.charset.StandardCharsets;
import java.time.Duration;
import java.util.ArrayList;
import java.util.Collections;
import java.util.List;
import java.util.Map;
import java.util.Properties;
import java.util.concurrent.Future;
import org.apache.kafka.clients.consumer.ConsumerRecord;
import org.apache.kafka.clients.consumer.ConsumerRecords;
import org.apache.kafka.clients.consumer.KafkaConsumer;
import org.apache.kafka.clients.producer.KafkaProducer;
import org.apache.kafka.clients.producer.ProducerRecord;
import org.apache.kafka.clients.producer.RecordMetadata;
import org.apache.kafka.common.TopicPartition;

/**
 * One client for every version of kafka-clients since 0.9. Compiled against the oldest; what the
 * versions spell differently is called by name.
 *
 * produce BOOTSTRAP TOPIC COUNT key=value…    prints an offset a line
 * consume BOOTSTRAP TOPIC COUNT key=value…    prints offset, key and value of each record
 * times BOOTSTRAP TOPIC TIMESTAMP             prints the offset found, or null
 */
public class Client {
    private static final long DEADLINE_MS = 30_000;

    public static void main(String[] words) throws Exception {
        Properties config = new Properties();
        config.put("bootstrap.servers", words[1]);
        for (int i = 4; i < words.length; i++) {
            String[] pair = words[i].split("=", 2);
            config.put(pair[0], pair[1]);
        }
        long number = Long.parseLong(words[3]);
        switch (words[0]) {
            case "produce" -> produce(config, words[2], (int) number);
            case "consume" -> consume(config, words[2], (int) number);
            case "times" -> times(config, words[2], number);
            default -> throw new IllegalArgumentException(words[0]);
        }
    }

    private static void produce(Properties config, String topic, int count) throws Exception {
        config.put("key.serializer", "org.apache.kafka.common.serialization.StringSerializer");
        config.put("value.serializer", "org.apache.kafka.common.serialization.StringSerializer");
        config.putIfAbsent("linger.ms", "20");
        KafkaProducer<String, String> producer = new KafkaProducer<>(config);
        boolean isTransactional = config.containsKey("transactional.id");
        if (isTransactional) {
            call(producer, "initTransactions");
            call(producer, "beginTransaction");
        }
        List<Future<RecordMetadata>> sent = new ArrayList<>();
        for (int i = 0; i < count; i++) {
            sent.add(producer.send(new ProducerRecord<>(topic, "key-" + i, "value-" + i)));
        }
        for (Future<RecordMetadata> each : sent) {
            System.out.println(each.get().offset());
        }
        if (isTransactional) {
            call(producer, "commitTransaction");
        }
        producer.close();
    }

    private static void consume(Properties config, String topic, int count) throws Exception {
        KafkaConsumer<byte[], byte[]> consumer = consumer(config);
        if (config.containsKey("group.id")) {
            call(consumer, "subscribe", Collections.singletonList(topic));
        } else {
            call(consumer, "assign", Collections.singletonList(new TopicPartition(topic, 0)));
            consumer.seek(new TopicPartition(topic, 0), 0L);
        }
        int taken = 0;
        for (long end = System.currentTimeMillis() + DEADLINE_MS; taken < count; ) {
            for (ConsumerRecord<byte[], byte[]> record : poll(consumer)) {
                System.out.println(record.offset() + " " + text(record.key()) + " " + text(record.value()));
                taken++;
            }
            if (System.currentTimeMillis() > end) {
                throw new IllegalStateException(taken + " of " + count + " records came");
            }
        }
        if (config.containsKey("group.id")) {
            consumer.commitSync();
        }
        consumer.close();
    }

    private static void times(Properties config, String topic, long timestamp) throws Exception {
        KafkaConsumer<byte[], byte[]> consumer = consumer(config);
        TopicPartition partition = new TopicPartition(topic, 0);
        Map<?, ?> asked = Collections.singletonMap(partition, timestamp);
        Object found = ((Map<?, ?>) call(consumer, "offsetsForTimes", asked)).get(partition);
        System.out.println(found == null ? "null" : call(found, "offset"));
        consumer.close();
    }

    private static KafkaConsumer<byte[], byte[]> consumer(Properties config) {
        String deserializer = "org.apache.kafka.common.serialization.ByteArrayDeserializer";
        config.put("key.deserializer", deserializer);
        config.put("value.deserializer", deserializer);
        config.put("auto.offset.reset", "earliest");
        config.put("enable.auto.commit", "false");
        return new KafkaConsumer<>(config);
    }

    @SuppressWarnings("unchecked")
    private static ConsumerRecords<byte[], byte[]> poll(KafkaConsumer<byte[], byte[]> consumer) throws Exception {
        Object answer;
        try {
            answer = KafkaConsumer.class.getMethod("poll", Duration.class).invoke(consumer, Duration.ofMillis(200));
        } catch (NoSuchMethodException before_2_0) {
            answer = KafkaConsumer.class.getMethod("poll", long.class).invoke(consumer, 200L);
        }
        return (ConsumerRecords<byte[], byte[]>) answer;
    }

    /** Calls the public method of this name that takes these arguments. */
    private static Object call(Object target, String name, Object... arguments) throws Exception {
        for (Method method : target.getClass().getMethods()) {
            if (method.getName().equals(name) && takes(method.getParameterTypes(), arguments)) {
                return method.invoke(target, arguments);
            }
        }
        throw new NoSuchMethodException(name);
    }

    private static boolean takes(Class<?>[] types, Object[] arguments) {
        boolean fits = types.length == arguments.length;
        for (int i = 0; fits && i < types.length; i++) {
            fits = types[i].isInstance(arguments[i]);
        }
        return fits;
    }

    private static String text(byte[] bytes) {
        return bytes == null ? "null" : new String(bytes, StandardCharsets.UTF_8);
    }
}
