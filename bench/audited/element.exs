# The same as an element, for fxml:element_to_binary/1.
item = {:xmlel, "item", [{"id", "1"}, {"name", "some words"}], [{:xmlcdata, "text & more"}]}
fn size -> [{:xmlel, "list", [], List.duplicate(item, max(1, div(size, 55)))}] end
