// The second opinion on src/tame_histogram.erl: what the Java HdrHistogram says of the same data.
//
//   java -cp /usr/share/java/hdrhistogram.jar test/java/HistogramCheck.java DATAFILE
//
// DATAFILE holds one integer per line, in ns. Printed are one figure per line, as a name and a
// value, and then the percentile distribution in microseconds for several numbers of ticks per
// half distance, each below a line "hgrm TICKS". test/src/tame_histogram_java_test.exs compares it.

import java.io.IOException;
import java.io.PrintStream;
import java.nio.file.Files;
import java.nio.file.Path;
import org.HdrHistogram.Histogram;

public class HistogramCheck {
    private static final double[] PERCENTILES = {
        0.0, 0.001, 1.0, 5.0, 10.0, 25.0, 33.333333333333336, 50.0, 66.66666666666667, 75.0, 90.0,
        95.0, 99.0, 99.5, 99.9, 99.95, 99.99, 99.999, 100.0
    };

    private static final int[] TICKS = {1, 3, 5, 7, 10, 100};

    public static void main(String[] args) throws IOException {
        Histogram histogram = new Histogram(1, 60_000_000_000L, 3);
        for (String line : Files.readAllLines(Path.of(args[0]))) {
            histogram.recordValue(Long.parseLong(line));
        }

        // Not System.out: its line ends and its decimal comma depend on the machine.
        PrintStream out = new PrintStream(System.out, false, "UTF-8");
        java.util.Locale.setDefault(java.util.Locale.ROOT);
        out.print("count " + histogram.getTotalCount() + "\n");
        out.print("min " + histogram.getMinValue() + "\n");
        out.print("max " + histogram.getMaxValue() + "\n");
        out.print("mean " + histogram.getMean() + "\n");
        out.print("stddev " + histogram.getStdDeviation() + "\n");
        for (double percentile : PERCENTILES) {
            long value = histogram.getValueAtPercentile(percentile);
            out.print("percentile " + percentile + " " + value + "\n");
        }
        for (int ticks : TICKS) {
            out.print("hgrm " + ticks + "\n");
            histogram.outputPercentileDistribution(out, ticks, 1000.0);
        }
        out.flush();
    }
}
