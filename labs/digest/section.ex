defmodule Tame.Digest.Section do
  @moduledoc "What the digest lab has to say in the report, from its result. Pure."

  alias Tame.Digest.{Charts, Format}
  alias Tame.Report.{Figure, Section, Table, Words}

  # A call is one stream's when it is long enough to be nothing else, and short when what surrounds it counts.
  @long 1_000_000
  @short 64

  @doc "The section, from a result of the digest lab (`format: 1`)."
  @spec from_result(map()) :: Section.t()
  def from_result(result) do
    %Section{
      id: "digest",
      name: "SHA-3",
      title: "SHA-3 against OpenSSL: a real library on tame.h",
      conclusion: speed(result.calls) ++ harm(result.load),
      warnings: Section.warnings(result, :but, []),
      intro: [
        "libraries/sha3 is written on tame.h as anybody's library would be. Its long calls are cut into slices where they run, " <>
          "so a large input does not hold a scheduler. OpenSSL's function is called by OTP's crypto, which cuts its input, too.",
        "A fast hash that blocks is no gain: so beside the speed stands how late a process wakes that shares its scheduler " <>
          "with those who hash."
      ],
      facts: [
        {"tame_sha3's code for this CPU", result.implementation},
        {"the other side", result.openssl},
        {"order of turns", "shuffled, seed #{result.seed}"}
      ],
      words: Charts.words(),
      figures: [calls(result), load(result)]
    }
  end

  # Of the sizes that are long for one stream the smallest, which a cache still holds. A saved result may lack any.
  defp speed(rows) do
    sizes = rows |> Enum.map(& &1.bytes) |> Enum.uniq() |> Enum.sort()
    long = Enum.find(sizes, &(&1 >= @long))
    short = Enum.find(sizes, &(&1 >= @short))

    with one when is_number(one) <- ratio(rows, long, "tame_sha3"),
         few when is_number(few) <- ratio(rows, short, "tame_sha3"),
         wide when is_number(wide) <- ratio(rows, long, "kt128") do
      [
        [
          "One SHA3-256 of #{Words.bytes(long)} is ",
          {:strong, "#{Words.times(one)} as fast as OpenSSL's"},
          ", one of #{Words.bytes(short)} #{Words.times(few)}. KangarooTwelve of the same family, in one process on one core, " <>
            "takes #{Words.bytes(long)} #{Words.times(wide)} as fast."
        ]
      ]
    else
      nil -> []
    end
  end

  defp ratio(rows, bytes, way) do
    with [%{us: crypto}, %{us: us}] when us > 0 <-
           for(
             wanted <- ["crypto", way],
             do: Enum.find(rows, &(&1.bytes == bytes and &1.way == wanted))
           ),
         do: crypto / us,
         else: (_ -> nil)
  end

  defp harm(rows) do
    case for way <- ["tame_sha3", "crypto", "nobody"],
             row = Enum.find(rows, &(&1.way == way)),
             do: Words.time(row.p99_us) do
      [tame, crypto, nobody] ->
        [
          [
            "Beside four processes that hash, a neighbour wakes ",
            {:strong, "#{tame} late with tame_sha3"},
            ", #{crypto} with crypto and #{nobody} beside nobody (p99)."
          ]
        ]

      _ ->
        []
    end
  end

  defp calls(result) do
    %Figure{
      id: "calls",
      title: "One call, by the size of its input",
      caption: [
        "The median of #{result.rounds} rounds. Each line of the grid is ten times the one before it."
      ],
      spec: if(result.calls != [], do: Charts.calls(result.calls)),
      table: %Table{
        title: "One call by size, in numbers",
        columns: columns(Format.call_titles()),
        rows: for(size <- Format.by_size(result.calls), do: Format.call_row(size))
      }
    }
  end

  defp load(result) do
    %Figure{
      id: "load",
      title: "What hashing does to a neighbour",
      caption: [
        "Four processes hash 1 MB each for ever, hash_many eight messages of an eighth of that. The neighbour sleeps on scheduler 1 " <>
          "and wants to wake every 10 ms."
      ],
      spec: if(result.load != [], do: Charts.load(result.load)),
      table: %Table{
        title: "Speed and delay, in numbers",
        columns: columns(Format.load_titles()),
        rows: Enum.map(result.load, &Format.load_row/1)
      }
    }
  end

  defp columns([first | others]), do: [{first, :text} | for(title <- others, do: {title, :number})]
end
