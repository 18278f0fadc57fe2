import java.io.BufferedReader;
import java.io.InputStreamReader;
import java.nio.charset.StandardCharsets;
import java.time.Duration;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.Collections;
import java.util.List;
import java.util.Properties;
import java.util.concurrent.ExecutionException;
import java.util.concurrent.TimeUnit;
import org.apache.kafka.clients.consumer.ConsumerRecord;
import org.apache.kafka.clients.consumer.KafkaConsumer;
import org.apache.kafka.clients.producer.KafkaProducer;
import org.apache.kafka.clients.producer.ProducerRecord;
import org.apache.kafka.common.KafkaException;
import org.apache.kafka.common.TopicPartition;

/**
 * Clients of whatever version is on the class path, that come as they are told. Compiled against 2.8.
 *
 * A line is what to do, its parts parted by tabs: what, the topic, how long it may take, the value
 * to be written or the offset to be read, then name=value of settings. The line that follows is its
 * answer: "ok" with the offset or the value, or "error" with the exception, without what is behind it.
 */
public class Secured {
    public static void main(String[] none) throws Exception {
        BufferedReader lines = new BufferedReader(new InputStreamReader(System.in, StandardCharsets.UTF_8));
        for (String line; (line = lines.readLine()) != null; ) {
            System.out.println(answer(line.split("\t")));
        }
    }

    private static String answer(String[] words) {
        try {
            Properties config = config(words);
            return "ok " + (words[0].equals("produce") ? produce(config, words) : read(config, words));
        } catch (Exception error) {
            Throwable told = error instanceof ExecutionException ? error.getCause() : error;
            if (told.getClass() == KafkaException.class && told.getCause() != null) { // of a constructor
                told = told.getCause();
            }
            return "error " + told.getClass().getSimpleName() + ": " + String.valueOf(told.getMessage()).replace('\n', ' ');
        }
    }

    private static Properties config(String[] words) {
        Properties config = new Properties();
        for (String name : List.of("max.block.ms", "request.timeout.ms", "delivery.timeout.ms", "default.api.timeout.ms")) {
            config.put(name, words[2]);
        }
        config.put("linger.ms", "0");
        for (String pair : Arrays.copyOfRange(words, 4, words.length)) {
            config.put(pair.split("=", 2)[0], pair.split("=", 2)[1]);
        }
        for (String side : List.of("key", "value")) {
            config.put(side + ".serializer", "org.apache.kafka.common.serialization.StringSerializer");
            config.put(side + ".deserializer", "org.apache.kafka.common.serialization.StringDeserializer");
        }
        return config;
    }

    private static String produce(Properties config, String[] words) throws Exception {
        try (KafkaProducer<String, String> producer = new KafkaProducer<>(config)) {
            ProducerRecord<String, String> record = new ProducerRecord<>(words[1], 0, null, words[3]);
            return String.valueOf(producer.send(record).get(Long.parseLong(words[2]), TimeUnit.MILLISECONDS).offset());
        }
    }

    private static String read(Properties config, String[] words) throws Exception {
        TopicPartition partition = new TopicPartition(words[1], 0);
        List<String> found = new ArrayList<>();
        try (KafkaConsumer<String, String> consumer = new KafkaConsumer<>(config)) {
            consumer.assign(Collections.singletonList(partition));
            consumer.seek(partition, Long.parseLong(words[3]));
            for (long end = System.currentTimeMillis() + Long.parseLong(words[2]); found.isEmpty(); ) {
                for (ConsumerRecord<String, String> record : consumer.poll(Duration.ofMillis(200))) {
                    found.add(record.value());
                }
                if (found.isEmpty() && System.currentTimeMillis() > end) {
                    throw new IllegalStateException("nothing came");
                }
            }
        }
        return found.get(0);
    }
}
