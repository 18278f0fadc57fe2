import java.time.Duration;
import java.util.List;
import java.util.Map;
import java.util.Properties;
import java.util.Set;
import org.apache.kafka.clients.consumer.AcknowledgeType;
import org.apache.kafka.clients.consumer.ConsumerRecord;
import org.apache.kafka.clients.consumer.KafkaShareConsumer;
import org.apache.kafka.common.serialization.StringDeserializer;

/** A member of a share group: prints what it was handed, and what became of its word on that. */
public class Share {
    /** bootstrap, group, topic, milliseconds until the first record has to be there, then settings;
        test.idle.ms is how long it waits for another one. */
    public static void main(String[] words) throws Exception {
        Properties settings = new Properties();
        settings.put("bootstrap.servers", words[0]);
        settings.put("group.id", words[1]);
        settings.put("key.deserializer", StringDeserializer.class.getName());
        settings.put("value.deserializer", StringDeserializer.class.getName());
        for (int at = 4; at < words.length; at++) {
            String[] pair = words[at].split("=", 2);
            settings.put(pair[0], pair[1]);
        }
        boolean isExplicit = "explicit".equals(settings.get("share.acknowledgement.mode"));
        long patience = Long.parseLong(words[3]);
        long idle = Long.parseLong(settings.getProperty("test.idle.ms", "3000"));
        try (KafkaShareConsumer<String, String> member = new KafkaShareConsumer<>(settings)) {
            member.setAcknowledgementCommitCallback(Share::told);
            member.subscribe(List.of(words[2]));
            long until = System.currentTimeMillis() + patience;
            while (System.currentTimeMillis() < until) {
                for (ConsumerRecord<String, String> record : member.poll(Duration.ofMillis(200))) {
                    until = System.currentTimeMillis() + idle;
                    int count = record.deliveryCount().orElse((short) 0);
                    System.out.println("got " + record.value() + " " + count);
                    if (isExplicit) {
                        member.acknowledge(record, wordOn(record.value(), count));
                    }
                }
                System.out.flush();
            }
        }
    }

    /** Values that end in 7 are rejected, in 3 released the first time. */
    private static AcknowledgeType wordOn(String value, int count) {
        if (value.endsWith("7")) {
            return AcknowledgeType.REJECT;
        }
        return value.endsWith("3") && count == 1 ? AcknowledgeType.RELEASE : AcknowledgeType.ACCEPT;
    }

    private static void told(
            Map<org.apache.kafka.common.TopicIdPartition, Set<Long>> offsets, Exception error) {
        int count = offsets.values().stream().mapToInt(Set::size).sum();
        System.out.println(error == null ? "acknowledged " + count : "refused " + error);
    }
}
