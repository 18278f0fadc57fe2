import java.io.BufferedInputStream;
import java.io.BufferedOutputStream;
import java.io.ByteArrayOutputStream;
import java.io.DataInputStream;
import java.io.DataOutputStream;
import java.io.EOFException;
import java.io.IOException;
import java.lang.reflect.Array;
import java.lang.reflect.Constructor;
import java.lang.reflect.InvocationTargetException;
import java.lang.reflect.Method;
import java.nio.ByteBuffer;
import java.nio.charset.StandardCharsets;

/**
 * Builds, reads and converts records with the kafka-clients on the class path, of any version from
 * 0.9 on: their classes have moved and changed, so all is found by reflection.
 *
 * <p>Requests on standard input, replies on standard output: "W" writes records, "R" reads a
 * buffer, "D" converts one down, "M" writes the marker that ends a transaction. A reply is a length
 * and bytes, or -1 and a message.
 */
public final class RecordsBridge {
    private static final String[] PACKAGES = {
        "org.apache.kafka.common.record.internal.", "org.apache.kafka.common.record."
    };

    public static void main(String[] arguments) throws Exception {
        DataInputStream in = new DataInputStream(new BufferedInputStream(System.in));
        DataOutputStream out = new DataOutputStream(new BufferedOutputStream(System.out));
        System.setOut(System.err);
        while (true) {
            int command;
            try {
                command = in.readUnsignedByte();
            } catch (EOFException end) {
                return;
            }
            byte[] reply = null;
            String failure = null;
            try {
                reply = answer(command, in);
            } catch (InvocationTargetException wrapped) {
                failure = String.valueOf(wrapped.getCause());
            } catch (Exception | Error other) {
                failure = String.valueOf(other);
            }
            if (failure == null) {
                out.writeInt(reply.length);
                out.write(reply);
            } else {
                out.writeInt(-1);
                out.writeUTF(failure);
            }
            out.flush();
        }
    }

    private static byte[] answer(int command, DataInputStream in) throws Exception {
        switch (command) {
            case 'W':
                return write(new Batch(in));
            case 'R':
                return read(memoryRecords(field(in)));
            case 'D':
                byte magic = in.readByte();
                long offset = in.readLong();
                return downConvert(memoryRecords(field(in)), magic, offset);
            case 'M':
                return marker(in);
            default:
                throw new IllegalArgumentException("command " + command);
        }
    }

    /** What a batch is made of, in the order of the request. */
    private static final class Batch {
        final byte magic;
        final byte codec;
        final boolean isAppendTime;
        final long appendTime;
        final long baseOffset;
        final long producerId;
        final short producerEpoch;
        final int baseSequence;
        final boolean isTransactional;
        final int leaderEpoch;
        final Entry[] entries;

        Batch(DataInputStream in) throws IOException {
            magic = in.readByte();
            codec = in.readByte();
            isAppendTime = in.readBoolean();
            appendTime = in.readLong();
            baseOffset = in.readLong();
            producerId = in.readLong();
            producerEpoch = in.readShort();
            baseSequence = in.readInt();
            isTransactional = in.readBoolean();
            leaderEpoch = in.readInt();
            entries = new Entry[in.readInt()];
            for (int i = 0; i < entries.length; i++) {
                entries[i] = new Entry(in);
            }
        }
    }

    private static final class Entry {
        final long offset;
        final long timestamp;
        final byte[] key;
        final byte[] value;
        final byte[][] headers;

        Entry(DataInputStream in) throws IOException {
            offset = in.readLong();
            timestamp = in.readLong();
            key = field(in);
            value = field(in);
            headers = new byte[2 * in.readInt()][];
            for (int i = 0; i < headers.length; i++) {
                headers[i] = field(in);
            }
        }
    }

    private static byte[] write(Batch batch) throws Exception {
        ByteBuffer buffer = ByteBuffer.allocate(1 << 16);
        if (find("MemoryRecordsBuilder") == null) {
            return writeWithoutBuilder(batch, buffer);
        }
        Object builder = builder(batch, buffer);
        Class<?> header = load("org.apache.kafka.common.header.Header");
        for (Entry entry : batch.entries) {
            if (header == null) {
                builder.getClass()
                    .getMethod("appendWithOffset", long.class, long.class, byte[].class, byte[].class)
                    .invoke(builder, entry.offset, entry.timestamp, entry.key, entry.value);
            } else {
                Object headers = headers(entry, header);
                builder.getClass()
                    .getMethod("appendWithOffset", long.class, long.class, byte[].class,
                        byte[].class, headers.getClass())
                    .invoke(builder, entry.offset, entry.timestamp, entry.key, entry.value, headers);
            }
        }
        return bytes((ByteBuffer) call(builder.getClass().getMethod("build").invoke(builder), "buffer"));
    }

    private static byte[] writeWithoutBuilder(Batch batch, ByteBuffer buffer) throws Exception {
        Class<?> type = find("MemoryRecords");
        Object records = type.getMethod("emptyRecords", ByteBuffer.class, find("CompressionType"))
            .invoke(null, buffer, codec(batch.codec));
        Method append = type.getMethod("append", long.class, byte[].class, byte[].class);
        for (Entry entry : batch.entries) {
            append.invoke(records, entry.offset, entry.key, entry.value);
        }
        call(records, "close");
        ByteBuffer written = (ByteBuffer) call(records, "buffer");
        return bytes(written);
    }

    private static Object builder(Batch batch, ByteBuffer buffer) throws Exception {
        Object[] all = {
            buffer, batch.magic, compression(batch.codec),
            constant(find("TimestampType"), batch.isAppendTime ? "LOG_APPEND_TIME" : "CREATE_TIME"),
            batch.baseOffset, batch.appendTime, batch.producerId, batch.producerEpoch,
            batch.baseSequence, batch.isTransactional, false, batch.leaderEpoch, buffer.capacity()
        };
        Object[] beforeProducers = {all[0], all[1], all[2], all[3], all[4], all[5], all[12]};
        for (Constructor<?> one : find("MemoryRecordsBuilder").getConstructors()) {
            if (one.getParameterTypes()[0] == ByteBuffer.class) {
                return one.newInstance(one.getParameterCount() == 7 ? beforeProducers : all);
            }
        }
        throw new NoSuchMethodException("MemoryRecordsBuilder(ByteBuffer, ...)");
    }

    private static Object headers(Entry entry, Class<?> header) throws Exception {
        int count = entry.headers.length / 2;
        Object headers = Array.newInstance(header, count);
        Constructor<?> create = load("org.apache.kafka.common.header.internals.RecordHeader")
            .getConstructor(String.class, byte[].class);
        for (int i = 0; i < count; i++) {
            String key = new String(entry.headers[2 * i], StandardCharsets.UTF_8);
            Array.set(headers, i, create.newInstance(key, entry.headers[2 * i + 1]));
        }
        return headers;
    }

    private static byte[] read(Object records) throws Exception {
        ByteArrayOutputStream bytes = new ByteArrayOutputStream();
        DataOutputStream out = new DataOutputStream(bytes);
        if (has(records, "batches")) {
            for (Object batch : (Iterable<?>) call(records, "batches")) {
                find("RecordBatch").getMethod("ensureValid").invoke(batch);
                for (Object record : (Iterable<?>) batch) {
                    put(out, find("Record"), record, null);
                }
            }
        } else {
            Object entries = has(records, "deepEntries") ? call(records, "deepEntries") : records;
            for (Object entry : (Iterable<?>) entries) {
                Object record = find("LogEntry").getMethod("record").invoke(entry);
                find("Record").getMethod("ensureValid").invoke(record);
                Object offset = find("LogEntry").getMethod("offset").invoke(entry);
                put(out, find("Record"), record, (Long) offset);
            }
        }
        return bytes.toByteArray();
    }

    private static void put(DataOutputStream out, Class<?> type, Object record, Long offset)
        throws Exception {
        boolean isMessage = offset != null;
        out.writeLong(isMessage ? offset : (Long) type.getMethod("offset").invoke(record));
        boolean hasTime = has(type, "timestamp");
        out.writeLong(hasTime ? (Long) type.getMethod("timestamp").invoke(record) : -1);
        put(out, (ByteBuffer) type.getMethod("key").invoke(record));
        put(out, (ByteBuffer) type.getMethod("value").invoke(record));
        Object headers = isMessage ? new Object[0] : type.getMethod("headers").invoke(record);
        Class<?> header = load("org.apache.kafka.common.header.Header");
        out.writeInt(Array.getLength(headers));
        for (int i = 0; i < Array.getLength(headers); i++) {
            Object one = Array.get(headers, i);
            String key = (String) header.getMethod("key").invoke(one);
            put(out, ByteBuffer.wrap(key.getBytes(StandardCharsets.UTF_8)));
            byte[] value = (byte[]) header.getMethod("value").invoke(one);
            put(out, value == null ? null : ByteBuffer.wrap(value));
        }
    }

    private static byte[] downConvert(Object records, byte magic, long offset) throws Exception {
        Class<?> time = load("org.apache.kafka.common.utils.Time");
        Object clock = time.getField("SYSTEM").get(null);
        Object converted = records.getClass().getMethod("downConvert", byte.class, long.class, time)
            .invoke(records, magic, offset, clock);
        return bytes((ByteBuffer) call(call(converted, "records"), "buffer"));
    }

    private static byte[] marker(DataInputStream in) throws Exception {
        Object type = constant(find("ControlRecordType"), in.readBoolean() ? "COMMIT" : "ABORT");
        Object marker = find("EndTransactionMarker").getConstructor(type.getClass(), int.class)
            .newInstance(type, in.readInt());
        Object records = find("MemoryRecords")
            .getMethod("withEndTransactionMarker", long.class, long.class, int.class, long.class,
                short.class, marker.getClass())
            .invoke(null, in.readLong(), in.readLong(), in.readInt(), in.readLong(),
                in.readShort(), marker);
        return bytes((ByteBuffer) call(records, "buffer"));
    }

    private static Object memoryRecords(byte[] bytes) throws Exception {
        return find("MemoryRecords").getMethod("readableRecords", ByteBuffer.class)
            .invoke(null, ByteBuffer.wrap(bytes));
    }

    private static Object compression(byte codec) throws Exception {
        Class<?> type = load("org.apache.kafka.common.compress.Compression");
        if (type == null) {
            return codec(codec);
        }
        Object builder = type.getMethod("of", find("CompressionType")).invoke(null, codec(codec));
        return load("org.apache.kafka.common.compress.Compression$Builder")
            .getMethod("build").invoke(builder);
    }

    private static Object codec(byte number) throws Exception {
        return constant(find("CompressionType"), new String[] {
            "NONE", "GZIP", "SNAPPY", "LZ4", "ZSTD"}[number]);
    }

    private static Object constant(Class<?> type, String name) throws Exception {
        return type.getField(name).get(null);
    }

    private static Object call(Object target, String name) throws Exception {
        return target.getClass().getMethod(name).invoke(target);
    }

    private static boolean has(Object target, String name) {
        return has(target.getClass(), name);
    }

    private static boolean has(Class<?> type, String name) {
        try {
            type.getMethod(name);
            return true;
        } catch (NoSuchMethodException absent) {
            return false;
        }
    }

    private static Class<?> find(String name) {
        for (String prefix : PACKAGES) {
            Class<?> found = load(prefix + name);
            if (found != null) {
                return found;
            }
        }
        return null;
    }

    private static Class<?> load(String name) {
        try {
            return Class.forName(name);
        } catch (ClassNotFoundException absent) {
            return null;
        }
    }

    private static byte[] field(DataInputStream in) throws IOException {
        int length = in.readInt();
        if (length < 0) {
            return null;
        }
        byte[] bytes = new byte[length];
        in.readFully(bytes);
        return bytes;
    }

    private static void put(DataOutputStream out, ByteBuffer field) throws IOException {
        if (field == null) {
            out.writeInt(-1);
            return;
        }
        byte[] bytes = bytes(field);
        out.writeInt(bytes.length);
        out.write(bytes);
    }

    private static byte[] bytes(ByteBuffer buffer) {
        byte[] bytes = new byte[buffer.remaining()];
        buffer.duplicate().get(bytes);
        return bytes;
    }
}
