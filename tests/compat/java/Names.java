import java.io.BufferedReader;
import java.io.ByteArrayInputStream;
import java.io.InputStreamReader;
import java.io.PrintStream;
import java.nio.charset.StandardCharsets;
import java.util.Base64;
import java.util.HexFormat;
import javax.security.auth.x500.X500Principal;
import org.apache.kafka.common.security.ssl.SslPrincipalMapper;

/**
 * What Java and Apache Kafka make of the name in a certificate.
 *
 * A line of the input is the name in DER, in hexadecimal digits, and the rules in base64; the answer
 * is a line with the name and one with the user, or with the class of the error, in base64.
 */
public class Names {
    public static void main(String[] none) throws Exception {
        PrintStream out = new PrintStream(System.out, true, StandardCharsets.US_ASCII);
        BufferedReader in = new BufferedReader(new InputStreamReader(System.in));
        for (String line = in.readLine(); line != null; line = in.readLine()) {
            String[] words = line.split(" ", -1);
            byte[] der = HexFormat.of().parseHex(words[0]);
            String rules = new String(decoded(words[1]), StandardCharsets.UTF_8);
            String name = new X500Principal(new ByteArrayInputStream(der)).getName();
            out.println(encoded(name));
            out.println(encoded(user(name, rules)));
        }
    }

    private static String user(String name, String rules) {
        try {
            return SslPrincipalMapper.fromRules(rules).getName(name);
        } catch (Exception error) {
            return "! " + error.getClass().getSimpleName();
        }
    }

    private static byte[] decoded(String text) {
        return Base64.getDecoder().decode(text);
    }

    private static String encoded(String text) {
        return Base64.getEncoder().encodeToString(text.getBytes(StandardCharsets.UTF_8));
    }
}
