package tame;

import com.ericsson.otp.erlang.OtpAuthException;
import com.ericsson.otp.erlang.OtpConnection;
import com.ericsson.otp.erlang.OtpErlangAtom;
import com.ericsson.otp.erlang.OtpErlangObject;
import com.ericsson.otp.erlang.OtpErlangPid;
import com.ericsson.otp.erlang.OtpErlangTuple;
import com.ericsson.otp.erlang.OtpInputStream;
import com.ericsson.otp.erlang.OtpPeer;
import com.ericsson.otp.erlang.OtpSelf;
import java.io.BufferedReader;
import java.io.IOException;
import java.io.InputStreamReader;
import java.io.Reader;
import java.nio.charset.StandardCharsets;

/**
 * A Java node that gives every term back, by Jinterface: the same program as tame_c_node.
 *
 * <pre>java -cp OtpErlang.jar:tame_echo_node.jar tame.EchoNode OWN_NODE VM_NODE</pre>
 *
 * <p>It reads two lines from standard input, the cookie and {Pid, Token} in external term format as
 * hexadecimal text; connects to VM_NODE; sends {tame_peer, Self, Token} to Pid; and answers every
 * message {From, Ref, Term} by {Ref, Term} to From. Jinterface makes a Java object of every term it
 * receives and bytes of every term it sends: that is what a Java node costs.
 *
 * <p>One more byte on standard input, or its end, ends it at once. A Java node does not end of
 * itself when its peer does: a lost connection must, and here does, end it too.
 */
public final class EchoNode {
    private static final int OK = 0;
    private static final int FAILED = 1;
    private static final int USAGE = 2;

    private EchoNode() {}

    public static void main(String[] args) {
        if (args.length != 2) {
            end(USAGE, args.length + " arguments; expected: OWN_NODE VM_NODE");
        }
        try {
            BufferedReader input =
                    new BufferedReader(new InputStreamReader(System.in, StandardCharsets.US_ASCII));
            String cookie = line(input, "the cookie");
            OtpErlangTuple hello = tuple(unhex(line(input, "{Pid, Token} in hexadecimal")), 2);

            watch(input);
            serve(connect(args[0], args[1], cookie), hello);
        } catch (IOException e) {
            end(FAILED, "lost the connection: " + e.getMessage());
        } catch (Exception e) {
            end(FAILED, e.toString());
        }
    }

    private static OtpConnection connect(String own, String vm, String cookie) throws IOException {
        try {
            return new OtpSelf(own, cookie).connect(new OtpPeer(vm));
        } catch (OtpAuthException e) {
            end(FAILED, vm + " refused the handshake: the cookie is not its own");
        } catch (IOException e) {
            end(FAILED, "cannot connect to " + vm + ": " + e.getMessage());
        }
        throw new AssertionError("end() returned");
    }

    private static void serve(OtpConnection connection, OtpErlangTuple hello) throws Exception {
        connection.send(
                (OtpErlangPid) hello.elementAt(0),
                new OtpErlangTuple(
                        new OtpErlangObject[] {
                            new OtpErlangAtom("tame_peer"),
                            connection.self().pid(),
                            hello.elementAt(1)
                        }));

        while (true) {
            OtpErlangTuple request = checked(connection.receive(), 3);
            connection.send(
                    (OtpErlangPid) request.elementAt(0),
                    new OtpErlangTuple(
                            new OtpErlangObject[] {request.elementAt(1), request.elementAt(2)}));
        }
    }

    /** From here on nobody else may read the input. */
    private static void watch(Reader input) {
        Thread thread =
                new Thread(
                        () -> {
                            try {
                                input.read();
                            } catch (IOException e) {
                                // As good as its end.
                            }
                            Runtime.getRuntime().halt(OK);
                        },
                        "watch standard input");
        thread.setDaemon(true);
        thread.start();
    }

    private static String line(BufferedReader input, String what) throws IOException {
        String line = input.readLine();
        if (line == null || line.isEmpty()) {
            end(FAILED, "standard input ended before " + what);
        }
        return line;
    }

    private static byte[] unhex(String text) {
        byte[] bytes = new byte[text.length() / 2];
        for (int i = 0; i < bytes.length; i++) {
            bytes[i] = (byte) Integer.parseInt(text.substring(2 * i, 2 * i + 2), 16);
        }
        return bytes;
    }

    private static OtpErlangTuple tuple(byte[] bytes, int arity) throws Exception {
        try (OtpInputStream stream = new OtpInputStream(bytes)) {
            return checked(stream.read_any(), arity);
        }
    }

    private static OtpErlangTuple checked(OtpErlangObject term, int arity) {
        if (term instanceof OtpErlangTuple && ((OtpErlangTuple) term).arity() == arity) {
            return (OtpErlangTuple) term;
        }
        throw new IllegalArgumentException("expected a tuple of " + arity + ", got: " + term);
    }

    /** At once, without shutdown hooks: other threads may be blocked in anything. */
    private static void end(int status, String why) {
        System.err.println("tame_echo_node: " + why);
        System.err.flush();
        Runtime.getRuntime().halt(status);
    }
}
