defmodule Audited.Packages do
  # Every package of this Debian release that is built against Erlang, unpacked into a scratch folder. Nothing is
  # installed; what an earlier run has downloaded is used again.

  @doc "`[%{name, version, folder}]`, the packages by name."
  def fetch(scratch) do
    debs = Path.join(scratch, "deb")
    File.mkdir_p!(debs)
    wanted = available()

    for %{name: name} = package <- wanted, deb(debs, package) == nil do
      {_, _} = System.cmd("apt-get", ["-q", "download", name], cd: debs, stderr_to_stdout: true)
    end

    for package <- wanted, path = deb(debs, package) do
      Map.put(package, :folder, unpack(path, scratch))
    end
  end

  # By what apt knows here: of this processor, and in need of Erlang's VM.
  defp available do
    {processor, 0} = System.cmd("dpkg", ["--print-architecture"])
    {all, 0} = System.cmd("apt-cache", ["dumpavail"])
    processor = String.trim(processor)

    for text <- String.split(all, "\n\n"),
        fields = fields(text),
        fields["Architecture"] == processor,
        erlang?(fields),
        uniq: true do
      %{name: fields["Package"], version: fields["Version"]}
    end
    |> Enum.sort_by(& &1.name)
    |> Enum.uniq_by(& &1.name)
  end

  defp fields(text) do
    for line <- String.split(text, "\n"),
        [key, value] <- [String.split(line, ": ", parts: 2)],
        into: %{},
        do: {key, value}
  end

  defp erlang?(fields) do
    String.starts_with?(fields["Package"] || "", "erlang-") or
      (fields["Depends"] || "") =~ ~r/\berlang-(base|abi)\b/
  end

  # An epoch's colon is written as %3a in a file's name.
  defp deb(debs, %{name: name, version: version}) do
    file = "#{name}_#{String.replace(version, ":", "%3a")}_"

    debs
    |> File.ls!()
    |> Enum.find(&String.starts_with?(&1, file))
    |> then(&(&1 && Path.join(debs, &1)))
  end

  defp unpack(deb, scratch) do
    folder = Path.join([scratch, "root", Path.basename(deb, ".deb")])

    if not File.dir?(folder) do
      beside = folder <> ".part"
      File.rm_rf!(beside)
      File.mkdir_p!(beside)
      {_, 0} = System.cmd("dpkg", ["-x", deb, beside])
      File.rename!(beside, folder)
    end

    folder
  end
end
