import java.lang.reflect.Proxy;
import java.net.InetAddress;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.Optional;
import org.apache.kafka.common.errors.ThrottlingQuotaExceededException;
import org.apache.kafka.common.metrics.Metrics;
import org.apache.kafka.common.metrics.Quota;
import org.apache.kafka.common.security.auth.KafkaPrincipal;
import org.apache.kafka.common.utils.Sanitizer;
import org.apache.kafka.common.utils.Time;
import org.apache.kafka.network.Session;
import org.apache.kafka.server.config.ClientQuotaManagerConfig;
import org.apache.kafka.server.quota.*;

/**
 * What Apache Kafka's own quota managers say to the lines of a file, a line each: `at MS`, `begin`,
 * `set|mutations USER CLIENT LIMIT`, `take USER CLIENT BYTES`, `mutate USER CLIENT PARTITIONS WAY`.
 * A name is itself, `*` for the default or `-` for none; a limit of `-` takes it away.
 */
public class Quotas {
    static long nowMs = 0;
    static final Time TIME = (Time) Proxy.newProxyInstance(Quotas.class.getClassLoader(), new Class[] {Time.class},
        (proxy, method, given) -> switch (method.getName()) {
            case "milliseconds" -> nowMs;
            case "nanoseconds" -> nowMs * 1_000_000;
            default -> method.invoke(Time.SYSTEM, given);
        });
    static ClientQuotaManager bytes;
    static ControllerMutationQuotaManager mutations;

    public static void main(String[] arguments) throws Exception {
        StringBuilder told = new StringBuilder();
        for (String line : Files.readAllLines(Path.of(arguments[0])))
            told.append(said(line.split(" "))).append('\n');
        System.out.print(told);
        System.exit(0);
    }

    static String said(String[] words) throws Exception {
        switch (words[0]) {
            case "at": nowMs = Long.parseLong(words[1]); return "-";
            case "begin": begin(Integer.parseInt(words[1]), Integer.parseInt(words[2])); return "-";
            case "set": set(bytes, words); return "-";
            case "mutations": set(mutations, words); return "-";
            case "take":
                return "" + bytes.maybeRecordAndGetThrottleTimeMs(
                    session(words[1]), name(words[2]), Double.parseDouble(words[3]), nowMs);
            default: return mutated(words);
        }
    }

    static void begin(int samples, int seconds) {
        ClientQuotaManagerConfig config = new ClientQuotaManagerConfig(samples, seconds);
        bytes = new ClientQuotaManager(config, new Metrics(TIME), QuotaType.PRODUCE, TIME, "");
        mutations = new ControllerMutationQuotaManager(config, new Metrics(TIME), TIME, "", Optional.empty());
    }

    static String mutated(String[] words) throws Exception {
        ControllerMutationQuota quota = words[4].equals("strict")
            ? mutations.newStrictQuotaFor(session(words[1]), name(words[2]))
            : mutations.newPermissiveQuotaFor(session(words[1]), name(words[2]));
        try {
            quota.record(Double.parseDouble(words[3]));
            return "done " + quota.throttleTime();
        } catch (ThrottlingQuotaExceededException refused) {
            return "refused " + quota.throttleTime();
        }
    }

    static void set(ClientQuotaManager manager, String[] words) {
        Optional<org.apache.kafka.server.quota.ClientQuotaEntity.ConfigEntity> user = switch (words[1]) {
            case "-" -> Optional.empty();
            case "*" -> Optional.of(ClientQuotaManager.DEFAULT_USER_ENTITY);
            default -> Optional.of(new ClientQuotaManager.UserEntity(Sanitizer.sanitize(words[1])));
        };
        Optional<org.apache.kafka.server.quota.ClientQuotaEntity.ConfigEntity> client = switch (words[2]) {
            case "-" -> Optional.empty();
            case "*" -> Optional.of(ClientQuotaManager.DEFAULT_USER_CLIENT_ID);
            default -> Optional.of(new ClientQuotaManager.ClientIdEntity(words[2]));
        };
        manager.updateQuota(user, client,
            words[3].equals("-") ? Optional.empty() : Optional.of(new Quota(Double.parseDouble(words[3]), true)));
    }

    static String name(String word) {
        return word.equals("-") ? "" : word;
    }

    static Session session(String user) throws Exception {
        return new Session(new KafkaPrincipal(KafkaPrincipal.USER_TYPE, name(user)), InetAddress.getLoopbackAddress());
    }
}
