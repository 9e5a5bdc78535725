defmodule Tame.Latency.Lines do
  @moduledoc """
  One colour per isolation and one line style per method, the same in every chart.

  Within the charts of one isolation colour is not enough, so each method has its own pair of colour and dash.
  """

  alias Tame.Report.Colours

  @grey Colours.hex(:grey)
  @blue Colours.hex(:blue)
  @cyan Colours.hex(:cyan)
  @green Colours.hex(:green)
  @olive Colours.hex(:olive)
  @indigo Colours.hex(:indigo)
  @vermillion Colours.hex(:vermillion)
  @amber Colours.hex(:amber)
  @pink Colours.hex(:pink)

  @isolations [
    {"none", @grey, "no native code: Erlang alone, the floor of the meter"},
    {"shared", @blue, "inside the VM: a crash of the native code ends the VM"},
    {"process", @vermillion, "an OS process of its own: a crash ends that process"},
    {"network", @pink, "a node of its own, on this machine or another: a crash ends that node"}
  ]

  @solid [1, 0]
  @dashed [6, 3]
  @dotted [2, 2]
  @mixed [9, 3, 2, 3]
  @long [14, 4]

  # Greys for no native code, cool hues inside the VM, warm ones for processes, pink for nodes.
  @lines %{
    "beam_call" => {@grey, @solid},
    "beam_process" => {@grey, @dashed},
    "nif_normal" => {@blue, @solid},
    "nif_yielding" => {@cyan, @dashed},
    "nif_dirty_cpu" => {@green, @solid},
    "nif_dirty_io" => {@olive, @dotted},
    "nif_yielding_dirty" => {@indigo, @mixed},
    "nif_thread_new" => {@blue, @dashed},
    "nif_thread_queue" => {@indigo, @dotted},
    "driver_call" => {@green, @long},
    "driver_control" => {@blue, @mixed},
    "driver_outputv" => {@indigo, @solid},
    "driver_async" => {@olive, @dashed},
    "isolated" => {@amber, @solid},
    "port" => {@vermillion, @solid},
    "socket_unix" => {@amber, @dashed},
    "socket_tcp" => {@vermillion, @dotted},
    "c_node" => {@pink, @solid},
    "java_node" => {@pink, @dashed}
  }

  @doc "Every isolation with its colour and what it means, safest last."
  @spec isolations() :: [Tame.Report.Section.word()]
  def isolations, do: for({name, colour, meaning} <- @isolations, do: {colour, name, meaning})

  @doc "The colour of an isolation; grey for one that this module has not heard of."
  @spec isolation(String.t()) :: String.t()
  def isolation(name) do
    case List.keyfind(@isolations, name, 0) do
      {_, colour, _} -> colour
      nil -> @grey
    end
  end

  @doc "A method's line as `{colour, dash}`; a method from elsewhere gets its isolation's colour, long-dashed."
  @spec line(id :: String.t(), isolation :: String.t()) :: {String.t(), [non_neg_integer()]}
  def line(id, isolation), do: Map.get(@lines, id, {isolation(isolation), @long})

  @doc "The ids that have a line of their own."
  @spec ids() :: [String.t()]
  def ids, do: Map.keys(@lines)
end
