defmodule Tame.Report.Shape do
  @moduledoc """
  What JSON has to be like to be read as what it stands for, and where it is not. Pure.

  A shape is a plain term, so that a lab can write down in a few lines what its section needs:

      iex> shape = %{id: :text, p50_us: {:maybe, :amount}, percentiles: [{:row, [:number, :amount]}]}
      iex> Tame.Report.Shape.check(%{"id" => "nif", "p50_us" => :null, "percentiles" => [[50, 0.1]]}, shape)
      :ok
      iex> Tame.Report.Shape.check(%{"id" => "nif", "p50_us" => "fast"}, shape)
      {:error, "p50_us: expected a number from 0 to 10^15 or null, got \\"fast\\""}
      iex> Tame.Report.Shape.check(%{"id" => "nif", "p50_us" => 7}, shape)
      {:error, "percentiles: expected a list, which is missing"}
  """

  @typedoc """
  `:count` is a whole number, `:amount` one with or without a fraction, `:number` may be negative, and a `:scalar` is a text, a
  number or a boolean. A map has these keys at
  least; `{:each, shape}` is an object with any keys. A function gets an object and gives the shape that it has to have.
  """
  @type t ::
          :text
          | :number
          | :amount
          | :count
          | :boolean
          | :scalar
          | {:is, String.t() | integer()}
          | {:maybe, t()}
          | {:row, [t()]}
          | {:each, t()}
          | [t()]
          | %{atom() => t()}
          | (map() -> t())

  # Far beyond any figure of a lab, and far from where arithmetic with floats ends.
  @most 1.0e15

  # Of a text that is wrong, so much is shown.
  @shown 40

  @doc "`:ok`, or where `json`, as `:tame_json` reads it, is another: the first such place, what was expected there, and what is there."
  @spec check(:tame_json.value(), t()) :: :ok | {:error, String.t()}
  def check(json, shape) do
    case wrong(json, shape, []) do
      nil -> :ok
      {path, expected, got} -> {:error, "#{where(path)}expected #{expected}, #{got}"}
    end
  end

  # nil, or the place from its end, what was expected there, and what is there.
  defp wrong(:null, {:maybe, _}, _path), do: nil

  defp wrong(value, {:maybe, shape}, path) do
    with {^path, expected, got} <- wrong(value, shape, path),
         do: {path, expected <> " or null", got}
  end

  defp wrong(%{} = object, shape, path) when is_function(shape, 1),
    do: wrong(object, shape.(object), path)

  defp wrong(%{} = object, {:each, shape}, path) do
    object |> Enum.sort() |> first(fn {key, value} -> wrong(value, shape, [key | path]) end)
  end

  defp wrong(%{} = object, %{} = shape, path) do
    shape
    |> Enum.sort()
    |> first(fn {key, shape} ->
      key = Atom.to_string(key)

      case object do
        %{^key => value} -> wrong(value, shape, [key | path])
        %{} -> {[key | path], expected(shape), "which is missing"}
      end
    end)
  end

  defp wrong([_ | _] = list, [shape], path) do
    list |> Enum.with_index() |> first(fn {value, at} -> wrong(value, shape, [at | path]) end)
  end

  defp wrong(list, {:row, shapes}, path) when is_list(list) and length(list) == length(shapes) do
    list
    |> Enum.zip(shapes)
    |> Enum.with_index()
    |> first(fn {{value, shape}, at} -> wrong(value, shape, [at | path]) end)
  end

  defp wrong(value, shape, path) do
    if plain?(value, shape), do: nil, else: {path, expected(shape), "got #{got(value)}"}
  end

  defp first(values, wrong), do: Enum.find_value(values, wrong)

  defp plain?(value, :text), do: is_binary(value)
  defp plain?(value, :number), do: is_number(value) and abs(value) <= @most
  defp plain?(value, :amount), do: is_number(value) and value >= 0 and value <= @most
  defp plain?(value, :count), do: is_integer(value) and value >= 0 and value <= @most
  defp plain?(value, :boolean), do: is_boolean(value)
  defp plain?(value, :scalar), do: is_binary(value) or is_boolean(value) or plain?(value, :number)
  defp plain?(value, {:is, value}), do: true
  defp plain?([], [_]), do: true
  defp plain?(_value, _shape), do: false

  # ---- words ----------------------------------------------------------------------------------------

  defp expected(:text), do: "a text"
  defp expected(:number), do: "a number from -10^15 to 10^15"
  defp expected(:amount), do: "a number from 0 to 10^15"
  defp expected(:count), do: "a whole number from 0 to 10^15"
  defp expected(:boolean), do: "true or false"
  defp expected(:scalar), do: "a text, a number, true or false"
  defp expected({:is, value}), do: inspect(value)
  defp expected({:maybe, shape}), do: expected(shape) <> " or null"
  defp expected({:row, shapes}), do: "a list of #{length(shapes)}"
  defp expected([_]), do: "a list"
  defp expected(_object), do: "an object"

  defp got(:null), do: "null"
  defp got(list) when is_list(list), do: "a list of #{length(list)}"
  defp got(%{}), do: "an object"

  defp got(text) when is_binary(text) do
    if String.length(text) > @shown,
      do: inspect(String.slice(text, 0, @shown) <> "…"),
      else: inspect(text)
  end

  defp got(number) when is_integer(number) and abs(number) > @most, do: "a larger number"
  defp got(value), do: inspect(value)

  # labs.latency.methods[3].p50_us
  defp where([]), do: ""

  defp where(path) do
    path
    |> Enum.reverse()
    |> Enum.map_join(fn
      at when is_integer(at) -> "[#{at}]"
      key -> "." <> if(key =~ ~r/^\w{1,40}\??$/, do: key, else: got(key))
    end)
    |> String.trim_leading(".")
    |> Kernel.<>(": ")
  end
end
