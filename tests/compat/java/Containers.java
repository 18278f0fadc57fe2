import java.time.Duration;
import java.util.List;
import java.util.Map;
import java.util.UUID;
import org.apache.kafka.clients.consumer.ConsumerRecord;
import org.apache.kafka.clients.consumer.KafkaConsumer;
import org.apache.kafka.clients.producer.KafkaProducer;
import org.apache.kafka.clients.producer.ProducerRecord;
import org.apache.kafka.common.serialization.StringDeserializer;
import org.apache.kafka.common.serialization.StringSerializer;
import org.testcontainers.containers.GenericContainer;
import org.testcontainers.containers.Network;
import org.testcontainers.kafka.ConfluentKafkaContainer;
import org.testcontainers.kafka.KafkaContainer;
import org.testcontainers.utility.DockerImageName;

/**
 * Testcontainers' own classes on an image: Containers IMAGE. Prints what was read of each, at its
 * address outside and, where the class has listeners for other containers, inside.
 */
public class Containers {
    private static final Duration PATIENCE = Duration.ofSeconds(60);
    private static final String INSIDE = "broker:19092";

    public static void main(String[] words) throws Exception {
        try (Network network = Network.newNetwork()) {
            DockerImageName apache = DockerImageName.parse(words[0]).asCompatibleSubstituteFor("apache/kafka");
            try (KafkaContainer kafka = new KafkaContainer(apache)) {
                kafka.withNetwork(network).withListener(INSIDE).start();
                toAndFro("apache", kafka.getBootstrapServers(), kafka);
            }
            DockerImageName confluent = DockerImageName.parse(words[0]).asCompatibleSubstituteFor("confluentinc/cp-kafka");
            try (ConfluentKafkaContainer kafka = new ConfluentKafkaContainer(confluent)) {
                kafka.withNetwork(network).withListener(INSIDE).start();
                toAndFro("confluent", kafka.getBootstrapServers(), kafka);
            }
            old("old", new org.testcontainers.containers.KafkaContainer(confluent), network);
            old("old-kraft", new org.testcontainers.containers.KafkaContainer(confluent).withKraft(), network);
        }
    }

    private static void old(String name, org.testcontainers.containers.KafkaContainer kafka, Network network) throws Exception {
        try (kafka) {
            kafka.withNetwork(network).withListener(() -> INSIDE).start();
            toAndFro(name, kafka.getBootstrapServers(), kafka);
        }
    }

    private static void toAndFro(String name, String bootstrap, GenericContainer<?> container) throws Exception {
        String topic = "t-" + UUID.randomUUID();
        Map<String, Object> there = Map.of("bootstrap.servers", bootstrap);
        try (var producer = new KafkaProducer<>(there, new StringSerializer(), new StringSerializer())) {
            producer.send(new ProducerRecord<>(topic, name)).get();
        }
        System.out.println("outside: " + read(bootstrap, topic));
        var inside = container.execInContainer("kafkalite", "consume", "-b", INSIDE, topic, "--count", "1");
        System.out.println("inside: " + inside.getStdout().strip() + inside.getStderr());
    }

    private static String read(String bootstrap, String topic) {
        Map<String, Object> config = Map.of("bootstrap.servers", bootstrap, "group.id", topic, "auto.offset.reset", "earliest");
        try (var consumer = new KafkaConsumer<>(config, new StringDeserializer(), new StringDeserializer())) {
            consumer.subscribe(List.of(topic));
            for (long end = System.nanoTime() + PATIENCE.toNanos(); System.nanoTime() < end; ) {
                for (ConsumerRecord<String, String> record : consumer.poll(Duration.ofMillis(500))) {
                    return record.value();
                }
            }
        }
        return "nothing came";
    }
}
