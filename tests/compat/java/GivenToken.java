import java.util.List;
import java.util.Map;
import java.util.Set;
import javax.security.auth.callback.Callback;
import javax.security.auth.login.AppConfigurationEntry;
import org.apache.kafka.common.security.auth.AuthenticateCallbackHandler;
import org.apache.kafka.common.security.oauthbearer.OAuthBearerToken;
import org.apache.kafka.common.security.oauthbearer.OAuthBearerTokenCallback;

/** A login with the token that stands in the JAAS line, as applications bring one of their own. */
public class GivenToken implements AuthenticateCallbackHandler, OAuthBearerToken {
    private String value;

    @Override
    public void configure(Map<String, ?> configs, String mechanism, List<AppConfigurationEntry> entries) {
        value = (String) entries.get(0).getOptions().get("token");
    }

    @Override
    public void handle(Callback[] callbacks) {
        for (Callback callback : callbacks) {
            if (callback instanceof OAuthBearerTokenCallback) {
                ((OAuthBearerTokenCallback) callback).token(this);
            }
        }
    }

    @Override
    public void close() {}

    @Override
    public String value() {
        return value;
    }

    @Override
    public Set<String> scope() {
        return Set.of();
    }

    @Override
    public long lifetimeMs() {
        return System.currentTimeMillis() + 3_600_000;
    }

    @Override
    public String principalName() {
        return "alice";
    }

    @Override
    public Long startTimeMs() {
        return null;
    }
}
