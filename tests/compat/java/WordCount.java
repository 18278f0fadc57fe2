import java.time.Duration;
import java.util.Properties;
import org.apache.kafka.common.serialization.Serdes;
import org.apache.kafka.streams.KafkaStreams;
import org.apache.kafka.streams.StreamsBuilder;
import org.apache.kafka.streams.StreamsConfig;
import org.apache.kafka.streams.errors.StreamsUncaughtExceptionHandler.StreamThreadExceptionResponse;
import org.apache.kafka.streams.kstream.Materialized;

/**
 * Counts words exactly once, until it is killed.
 *
 * WordCount BOOTSTRAP APPLICATION SOURCE TARGET STATE_FOLDER [SETTING=VALUE ...]
 *
 * Nothing is cached, so each record that comes in makes one that goes out: a word's counts in the
 * target are 1, 2, 3 and so on, and any loss or repetition shows as a gap or a second copy.
 */
public class WordCount {
    public static void main(String[] words) throws Exception {
        Properties config = new Properties();
        config.put(StreamsConfig.BOOTSTRAP_SERVERS_CONFIG, words[0]);
        config.put(StreamsConfig.APPLICATION_ID_CONFIG, words[1]);
        config.put(StreamsConfig.STATE_DIR_CONFIG, words[4]);
        config.put(StreamsConfig.PROCESSING_GUARANTEE_CONFIG, StreamsConfig.EXACTLY_ONCE_V2);
        config.put(StreamsConfig.DEFAULT_KEY_SERDE_CLASS_CONFIG, Serdes.String().getClass());
        config.put(StreamsConfig.DEFAULT_VALUE_SERDE_CLASS_CONFIG, Serdes.String().getClass());
        config.put(StreamsConfig.REPLICATION_FACTOR_CONFIG, 1);
        config.put(StreamsConfig.COMMIT_INTERVAL_MS_CONFIG, 100);
        config.put(StreamsConfig.STATESTORE_CACHE_MAX_BYTES_CONFIG, 0);
        config.put("consumer.auto.offset.reset", "earliest");
        config.put("consumer.max.poll.records", 200);
        config.put("producer.transaction.timeout.ms", 10_000);
        config.put("reconnect.backoff.max.ms", 200);
        for (int index = 5; index < words.length; index++) {
            String[] setting = words[index].split("=", 2);
            config.put(setting[0], setting[1]);
        }
        StreamsBuilder builder = new StreamsBuilder();
        builder.<String, String>stream(words[2])
            .groupBy((key, word) -> word)
            .count(Materialized.as("counts"))
            .toStream()
            .mapValues(count -> Long.toString(count))
            .to(words[3]);
        KafkaStreams streams = new KafkaStreams(builder.build(), config);
        streams.setUncaughtExceptionHandler(failure -> {
            System.err.println("a thread is replaced: " + failure);
            return StreamThreadExceptionResponse.REPLACE_THREAD;
        });
        Runtime.getRuntime().addShutdownHook(new Thread(() -> streams.close(Duration.ofSeconds(10))));
        streams.start();
        Thread.sleep(Long.MAX_VALUE);
    }
}
