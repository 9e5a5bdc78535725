/* Lists and tuples. */
#include "contract.h"

/* "Sets *len to the length of list and returns true. Returns false if term is not a proper list."
 * And "Sets *list to the reverse list"; and "Sets *head and *tail from list and returns true, or
 * false if it is not a list or the list is empty." */
CASE(lists)
{
    struct results r = {.len = 0};
    unsigned len = 99;
    term head = IN, tail = IN, reversed = enif_make_atom(env, "none");

    add_int(env, &r, enif_get_list_length(env, IN, &len) != 0);
    add_int(env, &r, enif_get_list_cell(env, IN, &head, &tail) != 0);
    add(&r, head);
    add(&r, tail);
    add_int(env, &r, enif_make_reverse_list(env, IN, &reversed) != 0);
    add(&r, reversed);
    return all(env, &r);
}

CASE(list_length)
{
    unsigned len = 0;

    enif_get_list_length(env, IN, &len);
    return enif_make_uint(env, len);
}

/* "Creates a list / a tuple containing the elements": of 0 to 9, by each function. */
CASE(make_lists_and_tuples)
{
    struct results r = {.len = 0};
    const term array[] = {IN, enif_make_int(env, 1), IN};

    add(&r, enif_make_list(env, 0));
    add(&r, enif_make_list1(env, IN));
    add(&r, enif_make_list3(env, IN, array[1], IN));
    add(&r, enif_make_list9(env, IN, IN, IN, IN, IN, IN, IN, IN, array[1]));
    add(&r, enif_make_list_from_array(env, array, 0));
    add(&r, enif_make_list_from_array(env, array, 3));
    add(&r, enif_make_list_cell(env, IN, array[1]));
    add(&r, enif_make_list_cell(env, IN, enif_make_list(env, 0)));
    add(&r, enif_make_tuple(env, 0));
    add(&r, enif_make_tuple1(env, IN));
    add(&r, enif_make_tuple9(env, IN, IN, IN, IN, IN, IN, IN, IN, array[1]));
    add(&r, enif_make_tuple_from_array(env, array, 0));
    add(&r, enif_make_tuple_from_array(env, array, 3));
    return all(env, &r);
}

/* "If term is a tuple, this function sets *array to point to an array containing the elements of
 * the tuple, and sets *arity to the number of elements." */
CASE(tuple_elements)
{
    const term *elements;
    int arity;

    if (!enif_get_tuple(env, IN, &arity, &elements))
        return enif_make_atom(env, "no_tuple");
    return enif_make_list_from_array(env, elements, (unsigned)arity);
}
