import java.lang.reflect.Method;
import java.util.ArrayList;
import java.util.List;

/**
 * What the broker of the release on the class path answers to ApiVersions: by its own classes, which
 * have changed their names and ways over the years. A line each:
 *
 * <pre>
 * api KEY LISTED_FROM LISTED_TO ANSWERED_FROM
 * unknown named|silent      what a version of ApiVersions that is not known is told of those that are
 * feature NAME FROM TO      of a broker with features
 * </pre>
 */
public class Listed {
    private static final String COMMON = "org.apache.kafka.common.";
    private static final String RESPONSE = COMMON + "requests.ApiVersionsResponse";

    public static void main(String[] arguments) throws Exception {
        for (Object each : listed()) {
            int key = number(each, "apiKey");
            System.out.println("api " + key + " " + number(each, "minVersion") + " "
                + number(each, "maxVersion") + " " + answeredFrom(key, number(each, "minVersion")));
        }
        System.out.println("unknown " + (isNamed() ? "named" : "silent"));
        features();
    }

    /** From 2.8 on by the kind of listener; before, all that there is and is not turned off. */
    private static Iterable<?> listed() throws Exception {
        Class<?> response = Class.forName(RESPONSE);
        Method filter = null;
        for (Method each : response.getMethods()) {
            boolean isLonger = filter == null
                || each.getParameterCount() > filter.getParameterCount();
            if (each.getName().equals("filterApis") && isLonger) {
                filter = each;
            }
        }
        return filter == null ? entries(wholeResponse(response)) : filtered(filter);
    }

    private static Iterable<?> filtered(Method filter) throws Exception {
        List<Object> given = new ArrayList<>();
        boolean isOn = false; // first whether unstable versions are listed, then telemetry
        for (Class<?> each : filter.getParameterTypes()) {
            if (each == boolean.class) {
                given.add(isOn);
                isOn = true;
            } else if (each.getSimpleName().equals("ListenerType")) {
                given.add(listener(each));
            } else {
                given.add(each.getMethod("current").invoke(null)); // of the format of records
            }
        }
        return (Iterable<?>) filter.invoke(null, given.toArray());
    }

    private static Object listener(Class<?> kinds) {
        Object broker = null;
        for (Object each : kinds.getEnumConstants()) {
            if (each.toString().equals("ZK_BROKER")) {
                return each;
            }
            broker = each.toString().equals("BROKER") ? each : broker;
        }
        return broker;
    }

    private static Object wholeResponse(Class<?> response) throws Exception {
        for (String name : List.of("DEFAULT_API_VERSIONS_RESPONSE", "API_VERSIONS_RESPONSE")) {
            try {
                return response.getField(name).get(null);
            } catch (NoSuchFieldException another) {
                continue;
            }
        }
        try {
            return response.getMethod("defaultApiVersionsResponse").invoke(null);
        } catch (NoSuchMethodException older) {
            return response.getMethod("apiVersionsResponse").invoke(null);
        }
    }

    private static Iterable<?> entries(Object response) throws Exception {
        try {
            return (Iterable<?>) response.getClass().getMethod("apiVersions").invoke(response);
        } catch (NoSuchMethodException newer) {
            Object data = value(response, "data");
            return (Iterable<?>) value(data, "apiKeys");
        }
    }

    private static int answeredFrom(int key, int listedFrom) throws Exception {
        Class<?> keys = Class.forName(COMMON + "protocol.ApiKeys");
        try {
            Object api = keys.getMethod("forId", int.class).invoke(null, key);
            return ((Number) keys.getMethod("oldestVersion").invoke(api)).intValue();
        } catch (NoSuchMethodException older) {
            return listedFrom;
        }
    }

    private static boolean isNamed() throws Exception {
        Class<?> errors = Class.forName(COMMON + "protocol.Errors");
        Object error = errors.getField("UNSUPPORTED_VERSION").get(null);
        try {
            Object builder = Class.forName(COMMON + "requests.ApiVersionsRequest$Builder")
                .getConstructor().newInstance();
            Object request = builder.getClass().getMethod("build", short.class)
                .invoke(builder, (short) 0);
            Object response = request.getClass()
                .getMethod("getErrorResponse", int.class, Throwable.class)
                .invoke(request, 0, errors.getMethod("exception").invoke(error));
            return entries(response).iterator().hasNext();
        } catch (ReflectiveOperationException older) {
            Object response = Class.forName(RESPONSE).getMethod("fromError", errors)
                .invoke(null, error);
            return entries(response).iterator().hasNext();
        }
    }

    private static void features() throws Exception {
        String server = "org.apache.kafka.server.common.";
        Class<?> features;
        try {
            features = Class.forName(server + "Feature");
        } catch (ClassNotFoundException older) {
            return;
        }
        Class<?> levels = Class.forName(server + "MetadataVersion");
        Object newest = levels.getField("LATEST_PRODUCTION").get(null);
        Object oldest = levels.getField("MINIMUM_VERSION").get(null);
        System.out.println("feature metadata.version " + number(oldest, "featureLevel") + " "
            + number(newest, "featureLevel"));
        for (Object each : (Iterable<?>) features.getField("PRODUCTION_FEATURES").get(null)) {
            if (number(each, "latestProduction") > 0) {
                System.out.println("feature " + value(each, "featureName") + " "
                    + number(each, "minimumProduction") + " " + number(each, "latestProduction"));
            }
        }
    }

    private static int number(Object from, String name) throws Exception {
        return ((Number) value(from, name)).intValue();
    }

    /** What a method of that name returns, or a field holds. */
    private static Object value(Object from, String name) throws Exception {
        try {
            Method method = from.getClass().getMethod(name);
            method.setAccessible(true);
            return method.invoke(from);
        } catch (NoSuchMethodException older) {
            return from.getClass().getField(name).get(from);
        }
    }
}
