import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.ObjectMapper;
import java.io.BufferedReader;
import java.io.InputStreamReader;
import java.io.PrintStream;
import java.lang.reflect.Constructor;
import java.lang.reflect.InvocationTargetException;
import java.lang.reflect.Method;
import java.nio.ByteBuffer;
import java.nio.charset.StandardCharsets;
import java.util.Base64;
import java.util.HashMap;
import java.util.Map;
import org.apache.kafka.common.protocol.ByteBufferAccessor;
import org.apache.kafka.common.protocol.Message;
import org.apache.kafka.common.protocol.ObjectSerializationCache;
import org.apache.kafka.common.protocol.Readable;

/**
 * Lets Apache Kafka's own message classes answer, a line for a line:
 *   versions CLASS            -> "LOWEST HIGHEST"
 *   write CLASS VERSION JSON  -> the bytes of the message, base64, and what those bytes read back are as JSON
 *   echo CLASS VERSION BYTES  -> the bytes that it writes after it has read these
 * Fields are separated by tabs. A failure is answered "error" and what was thrown.
 */
public class Conformance {
    private static final ObjectMapper JSON = new ObjectMapper();
    private static final Map<String, Method[]> CONVERTERS = new HashMap<>();

    public static void main(String[] arguments) throws Exception {
        PrintStream out = new PrintStream(System.out, false, StandardCharsets.UTF_8);
        BufferedReader in = new BufferedReader(new InputStreamReader(System.in, StandardCharsets.UTF_8));
        for (String line = in.readLine(); line != null; line = in.readLine()) {
            out.println(answer(line.split("\t", -1)));
            out.flush();
        }
    }

    private static String answer(String[] parts) {
        try {
            return switch (parts[0]) {
                case "versions" -> versions(parts[1]);
                case "echo" -> echo(parts[1], Short.parseShort(parts[2]), parts[3]);
                default -> write(parts[1], Short.parseShort(parts[2]), parts[3]);
            };
        } catch (InvocationTargetException failure) {
            return "error\t" + String.valueOf(failure.getCause()).replace('\n', ' ');
        } catch (Exception failure) {
            return "error\t" + failure.toString().replace('\n', ' ');
        }
    }

    private static String versions(String name) throws Exception {
        Class<?> message = Class.forName(name);
        return message.getField("LOWEST_SUPPORTED_VERSION").getShort(null) + " "
            + message.getField("HIGHEST_SUPPORTED_VERSION").getShort(null);
    }

    private static String write(String name, short version, String json) throws Exception {
        Method[] converter = converter(name);
        Message message = (Message) converter[0].invoke(null, JSON.readTree(json), version);
        byte[] bytes = bytes(message, version);
        JsonNode shown = (JsonNode) converter[1].invoke(null, read(name, version, bytes), version);
        return Base64.getEncoder().encodeToString(bytes) + "\t" + JSON.writeValueAsString(shown);
    }

    private static String echo(String name, short version, String encoded) throws Exception {
        Message message = read(name, version, Base64.getDecoder().decode(encoded));
        return Base64.getEncoder().encodeToString(bytes(message, version));
    }

    private static Message read(String name, short version, byte[] bytes) throws Exception {
        Constructor<?> reader = Class.forName(name).getConstructor(Readable.class, short.class);
        ByteBuffer buffer = ByteBuffer.wrap(bytes);
        Message message = (Message) reader.newInstance(new ByteBufferAccessor(buffer), version);
        if (buffer.hasRemaining()) {
            throw new IllegalStateException(buffer.remaining() + " bytes were not read");
        }
        return message;
    }

    private static byte[] bytes(Message message, short version) {
        ObjectSerializationCache cache = new ObjectSerializationCache();
        ByteBuffer buffer = ByteBuffer.allocate(message.size(cache, version));
        message.write(new ByteBufferAccessor(buffer), cache, version);
        if (buffer.hasRemaining()) {
            throw new IllegalStateException(buffer.remaining() + " bytes fewer were written than counted");
        }
        return buffer.array();
    }

    private static Method[] converter(String name) throws Exception {
        Method[] found = CONVERTERS.get(name);
        if (found == null) {
            Class<?> converter = Class.forName(name + "JsonConverter");
            found = new Method[] {
                converter.getMethod("read", JsonNode.class, short.class),
                converter.getMethod("write", Class.forName(name), short.class),
            };
            CONVERTERS.put(name, found);
        }
        return found;
    }
}
