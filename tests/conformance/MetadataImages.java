import java.io.BufferedReader;
import java.io.InputStreamReader;
import java.nio.ByteBuffer;
import java.util.ArrayList;
import java.util.Base64;
import java.util.List;
import java.util.stream.Collectors;
import org.apache.kafka.common.protocol.ByteBufferAccessor;
import org.apache.kafka.common.protocol.ObjectSerializationCache;
import org.apache.kafka.image.MetadataDelta;
import org.apache.kafka.image.MetadataImage;
import org.apache.kafka.image.MetadataProvenance;
import org.apache.kafka.image.writer.ImageWriterOptions;
import org.apache.kafka.image.writer.RecordListWriter;
import org.apache.kafka.metadata.MetadataRecordSerde;
import org.apache.kafka.server.common.ApiMessageAndVersion;
import org.apache.kafka.server.common.MetadataVersion;

/**
 * Lets Apache Kafka's own controller answer, a line for a line:
 *   levels        -> of each production level of metadata.version its number and the versions in which a registration,
 *                    a partition and a change of one are written, separated by blanks and commas
 *   image RECORDS -> the records of a snapshot of the image that these records make; records are base64 and separated
 *                    by commas. What the level cannot say ends the program, as it ends a controller.
 */
public class MetadataImages {
    public static void main(String[] arguments) throws Exception {
        BufferedReader in = new BufferedReader(new InputStreamReader(System.in));
        for (String line = in.readLine(); line != null; line = in.readLine()) {
            System.out.println(line.equals("levels") ? levels() : image(line.split(" ")[1].split(",")));
            System.out.flush();
        }
    }

    private static String levels() {
        List<String> levels = new ArrayList<>();
        for (MetadataVersion version : MetadataVersion.VERSIONS) {
            if (version.isProduction()) {
                levels.add(version.featureLevel() + " " + version.registerBrokerRecordVersion() + " "
                    + version.partitionRecordVersion() + " " + version.partitionChangeRecordVersion());
            }
        }
        return String.join(",", levels);
    }

    private static String image(String[] records) {
        MetadataDelta delta = new MetadataDelta.Builder().setImage(MetadataImage.EMPTY).build();
        for (String record : records) {
            ByteBuffer buffer = ByteBuffer.wrap(Base64.getDecoder().decode(record));
            delta.replay(MetadataRecordSerde.INSTANCE.read(new ByteBufferAccessor(buffer), buffer.remaining()).message());
        }
        MetadataImage image = delta.apply(MetadataProvenance.EMPTY);
        RecordListWriter writer = new RecordListWriter();
        image.write(writer, new ImageWriterOptions.Builder(image).build());
        return writer.records().stream().map(MetadataImages::encoded).collect(Collectors.joining(","));
    }

    private static String encoded(ApiMessageAndVersion record) {
        ObjectSerializationCache cache = new ObjectSerializationCache();
        ByteBuffer buffer = ByteBuffer.allocate(MetadataRecordSerde.INSTANCE.recordSize(record, cache));
        MetadataRecordSerde.INSTANCE.write(record, cache, new ByteBufferAccessor(buffer));
        return Base64.getEncoder().encodeToString(buffer.array());
    }
}
