/* Through a term, see etf_walk.h. */
#include "term/map.h"
#include "wire/etf_walk.h"

void walk_array(struct work *work, const term *from, size_t left)
{
    if (left > 0)
        *(struct walk_item *)work_push(work) = (struct walk_item){WALK_ARRAY, from, left, 0};
}

void walk_list(struct work *work, term list)
{
    *(struct walk_item *)work_push(work) = (struct walk_item){WALK_LIST, cell_of(list), 0, 0};
}

void walk_pairs(struct work *work, term map)
{
    size_t len = map_len(map);

    if (len > MAP_FLAT_LEN)
        *(struct walk_item *)work_push(work) =
            (struct walk_item){WALK_PAIRS_BACK, map_pairs(map) + 2 * (len - 1), 2 * len, 0};
    else
        walk_array(work, map_pairs(map), 2 * len);
}

int walk_next(struct work *work, term *next)
{
    struct walk_item *top = work_top(work);

    if (top == NULL)
        return 0;
    switch (top->kind) {
    case WALK_LIST:
        *next = top->from[0];
        if (is_list_cell(top->from[1]))
            top->from = cell_of(top->from[1]);
        else
            *top = (struct walk_item){WALK_ARRAY, top->from + 1, 1, 0};
        return 1;
    case WALK_PAIRS_BACK:
        *next = top->from[top->value];
        if (top->value && top->left > 1)
            top->from -= 2;
        top->value = !top->value;
        break;
    case WALK_ARRAY:
        *next = *top->from++;
        break;
    }
    if (--top->left == 0)
        work_pop(work);
    return 1;
}
