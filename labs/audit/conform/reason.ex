defmodule Tame.Audit.Conform.Reason do
  @moduledoc "What a difference means and what to do about it, in a sentence. Pure."

  @doc """
  Of a difference.

      iex> Tame.Audit.Conform.Reason.sentence(%{kind: :hangs, in_vm: "does not return", isolated: "1", repeats: true})
      "the call returns on one side only within 4 s; try it with tame:with/2 and a deadline"
  """
  @spec sentence(%{kind: atom(), in_vm: String.t(), isolated: String.t(), repeats: boolean()}) ::
          String.t()
  def sentence(%{repeats: false} = difference) do
    "not seen when it was called alone: it depends on what was called before, or on the machine's load; " <>
      sentence(%{difference | repeats: true})
  end

  def sentence(%{kind: :vm}),
    do:
      "an isolated library must never end the VM: this is a defect of tame, please report it with this line"

  def sentence(%{kind: :crash, isolated: "its host died" <> _}) do
    "the library reads or writes memory that is not its own, or closes descriptors, or changes the process it is in: in " <>
      "the VM nothing was hit this time, in the host something was. The VM goes on; report the input to the library's author"
  end

  def sentence(%{kind: :crash}) do
    "the library reads or writes memory that is not its own, or closes descriptors, or changes the process it is in: the " <>
      "VM died of it, and the host did not this time. " <>
      "Isolate it, and report the input to the library's author"
  end

  def sentence(%{kind: :hangs}),
    do: "the call returns on one side only within 4 s; try it with tame:with/2 and a deadline"

  def sentence(%{kind: :order}) do
    "the same elements in another order, which is that of atoms or of memory, and not the same from one VM to the next " <>
      "either: sort them where it matters"
  end

  def sentence(%{kind: :messages}) do
    "other messages came: a host delivers to callers, to processes named in arguments, and to those found by name that are " <>
      "not the system's own"
  end

  def sentence(%{isolated: isolated} = difference) do
    cond do
      isolated =~ "{tame," ->
        "tame ended the call; docs/guide/isolate.md has what the reason means"

      difference.kind == :exception ->
        "the library asks for something that a host answers in another way; see the table in docs/reference/host_api.md"

      true ->
        "the value depends on something that a host has of its own: memory, statics, descriptors, files, environment, the order of atoms"
    end
  end
end
