defmodule Tame.HistogramJavaTest do
  # Compares every figure, exactly, and every line of the text form, byte for byte, with the Java
  # HdrHistogram (made with 2.1.11) on the same data.
  use ExUnit.Case, async: true

  @max_ns 60_000_000_000
  @check Path.expand("../java/HistogramCheck.java", __DIR__)

  # HDRHISTOGRAM_JAR names the jar where it is not in Debian's place (libhdrhistogram-java).
  @jar System.get_env("HDRHISTOGRAM_JAR", "/usr/share/java/hdrhistogram.jar")

  @missing (cond do
              System.find_executable("java") == nil -> "there is no java on the PATH"
              not File.exists?(@jar) -> "#{@jar} is missing; HDRHISTOGRAM_JAR may name another"
              true -> nil
            end)

  @moduletag :java
  if @missing do
    IO.puts("Skipped: the comparison with the Java HdrHistogram, because #{@missing}.")
    @moduletag skip: @missing
  end

  # A name, and a function from a random state to values; the state is fixed, so a failure repeats.
  @data_sets [
    {"no value at all", :none},
    {"one value, 0", :zero},
    {"one constant", :constant},
    {"uniform over the whole range", :uniform},
    {"a long tail over the whole range", :long_tail},
    {"exponential around 50 µs", :exponential},
    {"two modes far apart", :bimodal},
    {"every edge between buckets", :edges}
  ]

  for {name, data_set} <- @data_sets do
    test "agrees with Java: #{name}" do
      values = values(unquote(data_set))
      h = :tame_histogram.new()
      Enum.each(values, &:tame_histogram.record(h, &1))
      assert :tame_histogram.out_of_range(h) == 0

      {figures, texts} = ask_java(values)

      # Each kind of answer is counted first, so that an empty one from Java does not pass.
      assert length(figures) == 5 + 19
      for figure <- figures, do: assert_figure(h, figure)

      assert length(texts) == 6
      for {ticks, text} <- texts, do: assert_text(h, ticks, text)
    end
  end

  defp assert_figure(h, ["percentile", percentile, expected]) do
    percentile = String.to_float(percentile)
    got = :tame_histogram.percentile(h, percentile)
    assert {percentile, got} == {percentile, String.to_integer(expected)}
  end

  defp assert_figure(h, [name, expected]) do
    function = String.to_existing_atom(name)
    parse = if name in ~w(mean stddev), do: &String.to_float/1, else: &String.to_integer/1
    assert {name, apply(:tame_histogram, function, [h])} == {name, parse.(expected)}
  end

  defp assert_text(h, ticks, expected) do
    text = IO.iodata_to_binary(:tame_histogram.hgrm(h, ticks))
    # Line by line first: the report of one line that differs can be read, that of 50 KB cannot.
    for {ours, theirs} <- Enum.zip(String.split(text, "\n"), String.split(expected, "\n")) do
      assert ours == theirs
    end

    assert text == expected
  end

  defp ask_java(values) do
    file = Path.join(System.tmp_dir!(), "tame_histogram_#{System.unique_integer([:positive])}.txt")
    on_exit(fn -> File.rm(file) end)
    File.write!(file, Enum.map(values, &[Integer.to_string(&1), ?\n]))

    {output, status} =
      System.cmd(System.find_executable("java"), ["-cp", @jar, @check, file], stderr_to_stdout: true)

    assert status == 0, output

    [figures | texts] = String.split(output, ~r/^hgrm /m)
    {figures |> String.split("\n", trim: true) |> Enum.map(&String.split/1), texts(texts)}
  end

  defp texts(texts) do
    for text <- texts do
      [ticks, text] = String.split(text, "\n", parts: 2)
      {String.to_integer(ticks), text}
    end
  end

  defp values(:none), do: []
  defp values(:zero), do: [0]
  defp values(:constant), do: List.duplicate(123_456_789, 20_000)
  defp values(:uniform), do: random(40_000, fn share -> trunc(share * @max_ns) end)

  # Evenly spread over the logarithm, from 1 ns to 60 s.
  defp values(:long_tail) do
    [@max_ns | random(40_000, fn share -> trunc(:math.exp(share * :math.log(@max_ns))) end)]
  end

  defp values(:exponential), do: random(40_000, fn share -> trunc(-50_000 * :math.log(share)) end)

  defp values(:bimodal) do
    random(20_000, fn share -> 1_000 + trunc(share * 500) end) ++
      random(500, fn share -> 2_000_000_000 + trunc(share * 1_000_000_000) end)
  end

  defp values(:edges) do
    for bit <- 11..35, sub <- [1024, 1025, 1535, 2046, 2047], step <- -1..1 do
      min(Bitwise.bsl(sub, bit - 10) + step, @max_ns)
    end
  end

  # `fun` gets numbers from 0 to 1, 1 excluded and 0 as good as excluded.
  defp random(n, fun) do
    state = :rand.seed_s(:exsss, {25, 11, 2014})

    {values, _} =
      Enum.map_reduce(1..n, state, fn _, state ->
        {share, state} = :rand.uniform_real_s(state)
        {fun.(share), state}
      end)

    values
  end
end
