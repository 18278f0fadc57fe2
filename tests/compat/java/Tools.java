import java.io.BufferedReader;
import java.io.ByteArrayOutputStream;
import java.io.InputStreamReader;
import java.io.PrintStream;
import java.lang.reflect.InvocationTargetException;
import java.nio.charset.StandardCharsets;
import java.util.Arrays;
import org.apache.kafka.common.utils.Exit;

/**
 * Apache Kafka's command line tools, one call after the other in one JVM.
 *
 * A line of the input is a class and its arguments, separated by tabs. The answer is a line with the
 * exit status and the number of bytes that the tool wrote, and then these bytes.
 */
public class Tools {
    private static class Ended extends RuntimeException {
        private final int status;

        private Ended(int status) {
            super(null, null, false, false);
            this.status = status;
        }
    }

    public static void main(String[] none) throws Exception {
        Exit.Procedure end = (status, message) -> {
            throw new Ended(status);
        };
        Exit.setExitProcedure(end);
        Exit.setHaltProcedure(end);
        PrintStream answers = System.out;
        BufferedReader calls = new BufferedReader(new InputStreamReader(System.in, StandardCharsets.UTF_8));
        for (String line = calls.readLine(); line != null; line = calls.readLine()) {
            ByteArrayOutputStream said = new ByteArrayOutputStream();
            PrintStream collected = new PrintStream(said, true, StandardCharsets.UTF_8);
            System.setOut(collected);
            System.setErr(collected);
            String[] words = line.split("\t");
            int status = call(words[0], Arrays.copyOfRange(words, 1, words.length), collected);
            answers.println(status + " " + said.size());
            answers.write(said.toByteArray());
            answers.flush();
        }
    }

    private static int call(String tool, String[] arguments, PrintStream collected) throws Exception {
        try {
            Class.forName(tool).getMethod("main", String[].class).invoke(null, (Object) arguments);
            return 0;
        } catch (InvocationTargetException raised) {
            if (raised.getCause() instanceof Ended ended) {
                return ended.status;
            }
            raised.getCause().printStackTrace(collected);
            return 1;
        }
    }
}
