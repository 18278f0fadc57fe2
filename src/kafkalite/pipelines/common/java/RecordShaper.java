package kafkalite.pipelines;

import java.nio.ByteBuffer;
import java.util.Map;
import org.apache.kafka.clients.producer.ProducerInterceptor;
import org.apache.kafka.clients.producer.ProducerRecord;
import org.apache.kafka.clients.producer.RecordMetadata;
import org.apache.kafka.common.header.Header;

/**
 * Gives records the timestamp that a header carries, takes that header off, and keeps to a rate.
 *
 * Spark's Kafka sink has no column for timestamps. Written for Spark's Janino: no generics.
 */
public final class RecordShaper implements ProducerInterceptor {
  private static final String HEADER = "__kafkalite.timestamp";
  private static final String RATE = "kafkalite.records.per.second";

  private long nanosPerRecord = 0L;
  private long next = 0L;

  public void configure(Map configs) {
    Object rate = configs.get(RATE);
    if (rate != null) {
      nanosPerRecord = 1000000000L / Math.max(1L, Long.parseLong(rate.toString()));
    }
  }

  public ProducerRecord onSend(ProducerRecord record) {
    if (nanosPerRecord > 0L) {
      awaitTurn();
    }
    Header stamp = record.headers().lastHeader(HEADER);
    if (stamp == null) {
      return record;
    }
    Long timestamp = Long.valueOf(ByteBuffer.wrap(stamp.value()).getLong());
    record.headers().remove(HEADER);
    return new ProducerRecord(
        record.topic(), record.partition(), timestamp, record.key(), record.value(), record.headers());
  }

  // All tasks of an executor share one producer, hence one interceptor and one schedule.
  private void awaitTurn() {
    long turn;
    synchronized (this) {
      turn = Math.max(next, System.nanoTime());
      next = turn + nanosPerRecord;
    }
    long wait = turn - System.nanoTime();
    if (wait > 0L) {
      try {
        Thread.sleep(wait / 1000000L, (int) (wait % 1000000L));
      } catch (InterruptedException interrupted) {
        Thread.currentThread().interrupt();
      }
    }
  }

  public void onAcknowledgement(RecordMetadata metadata, Exception exception) {}

  public void close() {}
}
