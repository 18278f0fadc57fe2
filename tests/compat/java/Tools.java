import java.io.ByteArrayInputStream;
import java.io.ByteArrayOutputStream;
import java.io.IOException;
import java.io.InputStream;
import java.io.PrintStream;
import java.lang.reflect.Field;
import java.lang.reflect.InvocationTargetException;
import java.nio.charset.StandardCharsets;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.Collection;
import java.util.List;
import java.util.Map;
import org.apache.kafka.common.utils.Exit;

/**
 * Apache Kafka's command line tools, one call after the other in one JVM.
 *
 * A line of the input is a number of bytes, a class and its arguments, separated by tabs; the bytes
 * that follow are the tool's own input. The answer is a line with the exit status and the number of
 * bytes that the tool wrote, and then these bytes. What a tool would do when its JVM ends is done
 * when it ends.
 */
public class Tools {
    private static final int HOOK_TIMEOUT_MS = 10_000;
    private static final List<Runnable> hooks = new ArrayList<>();
    // Of the JVM itself, by its end or by a tool that has ended.
    private static Collection<Thread> threads;

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
        Exit.setShutdownHookAdder((name, hook) -> hooks.add(hook));
        threads = threads();
        List<Thread> own = List.copyOf(threads);
        PrintStream answers = System.out;
        InputStream calls = System.in;
        for (String line = line(calls); line != null; line = line(calls)) {
            ByteArrayOutputStream said = new ByteArrayOutputStream();
            PrintStream collected = new PrintStream(said, true, StandardCharsets.UTF_8);
            System.setOut(collected);
            System.setErr(collected);
            String[] words = line.split("\t");
            System.setIn(new ByteArrayInputStream(calls.readNBytes(Integer.parseInt(words[0]))));
            int status = call(words[1], Arrays.copyOfRange(words, 2, words.length), collected);
            end(own);
            answers.println(status + " " + said.size());
            answers.write(said.toByteArray());
            answers.flush();
        }
    }

    private static String line(InputStream input) throws IOException {
        ByteArrayOutputStream line = new ByteArrayOutputStream();
        for (int next = input.read(); next != '\n'; next = input.read()) {
            if (next < 0) {
                return null;
            }
            line.write(next);
        }
        return line.toString(StandardCharsets.UTF_8);
    }

    @SuppressWarnings("unchecked")
    private static Collection<Thread> threads() throws ReflectiveOperationException {
        Field field = Class.forName("java.lang.ApplicationShutdownHooks").getDeclaredField("hooks");
        field.setAccessible(true);
        return ((Map<Thread, Thread>) field.get(null)).keySet();
    }

    private static void end(List<Thread> own) throws InterruptedException {
        List<Thread> ending = new ArrayList<>(hooks.stream().map(Thread::new).toList());
        hooks.clear();
        for (Thread thread : List.copyOf(threads)) {
            if (!own.contains(thread)) {
                Runtime.getRuntime().removeShutdownHook(thread);
                ending.add(thread);
            }
        }
        for (Thread thread : ending) {
            thread.setDaemon(true);
            thread.start();
            thread.join(HOOK_TIMEOUT_MS);
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
