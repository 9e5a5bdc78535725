/* The cases of each file, in its order. The prototypes and the function table come from here. */
#ifndef CONTRACT_CASES_H
#define CONTRACT_CASES_H

#define CASES_TERMS(F)                                                                   \
    F(echo), F(copy_there_and_back), F(clear_env_and_use_again), F(term_to_binary),      \
        F(binary_to_term), F(binary_to_term_safe), F(order), F(phash2), F(phash2_large), \
        F(phash2_of_atom), F(internal_hash_of_a_copy)

#define CASES_NUMBERS(F) \
    F(types), F(numbers), F(make_numbers), F(make_double_infinite), F(make_double_nan)

#define CASES_ATOMS(F)                                                                          \
    F(atoms), F(make_atom_of_binary), F(make_existing_atom), F(atoms_are_words), F(get_string), \
        F(make_utf8), F(make_string)

#define CASES_LISTS(F) F(lists), F(list_length), F(make_lists_and_tuples), F(tuple_elements)

#define CASES_BINARIES(F)                                                                  \
    F(inspect), F(make_binary_leaves_data_readable), F(realloc_binary), F(release_binary), \
        F(make_binary_moved), F(write_past_end), F(write_past_arguments), F(alignment),    \
        F(sub_binaries), F(make_new_binary)

#define CASES_IO_QUEUE(F) F(iovec), F(io_queue), F(io_queue_options), F(io_queue_head_outlives)

#define CASES_MAPS(F)                                                                              \
    F(maps), F(map_order), F(map_walk), F(map_of_keys), F(map_from_arrays), F(maps_do_not_change), \
        F(maps_of_another_environment), F(map_changes), F(map_of_counts), F(map_elsewhere)

#define CASES_EXCEPTIONS(F)                                                                    \
    F(badarg), F(scheduled_is_no_exception), F(not_scheduled_is_exception), F(was_exception_), \
        F(raise_reason), F(raise_and_return_another)

#define CASES_SCHEDULE(F)                                                                  \
    F(schedule), F(schedule_dirty), F(schedule_odd), F(schedule_garbage), F(schedule_map), \
        F(consume_timeslice)

#define CASES_RESOURCES(F)                                                               \
    F(resource_make), F(resource_get), F(resource_terms_are_references),                 \
        F(resource_destructor_is_not_called_inside), F(resource_destructors),            \
        F(resource_make_counted), F(resource_kept), F(resource_named), F(resource_sent), \
        F(resource_binary), F(resource_binary_is_resource), F(resource_dynamic_call)

#define CASES_SELECT(F)                                                                          \
    F(select_open), F(select), F(select_number), F(select_again), F(select_put), F(select_take), \
        F(select_close), F(select_stops), F(select_slot), F(select_let_go), F(select_destructors)

#define CASES_PROCESSES(F)                                                                         \
    F(self), F(pids), F(whereis), F(send), F(send_from_thread), F(send_until_gone), F(send_large), \
        F(make_refs), F(unique_integers), F(port_command)

#define CASES_MONITORS(F) \
    F(monitor), F(monitor_term), F(monitor_downs), F(monitor_many), F(demonitor)

#define CASES_THREADS(F) \
    F(threads), F(wait_for_gate), F(open_gate), F(locks), F(thread_specific_data), F(thread_types)

#define CASES_TIME(F) F(convert_time), F(clocks), F(clock_of_other_thread)

#define CASES_PRINT(F) F(print_term), F(print_formats)

#define CASES_SYSTEM(F)                                                                         \
    F(system_info), F(getenv_), F(multibyte), F(memory), F(private_data), F(dynamic_libraries), \
        F(say), F(start_children), F(errno_ids)

#define CASES_CRASHES(F)                                                                          \
    F(crash_segv), F(crash_thread), F(crash_thread_stack), F(crash_many), F(crash_without_stack), \
        F(crash_jump), F(crash_kill), F(crash_of_child), F(forge_record), F(crash_fpe),           \
        F(crash_abort), F(crash_exit), F(crash_stack), F(hang_with_signals_blocked),              \
        F(hang_until_cancelled)

#define CASES(F)                                                                         \
    CASES_TERMS(F), CASES_NUMBERS(F), CASES_ATOMS(F), CASES_LISTS(F), CASES_BINARIES(F), \
        CASES_IO_QUEUE(F), CASES_MAPS(F), CASES_EXCEPTIONS(F), CASES_SCHEDULE(F),        \
        CASES_RESOURCES(F), CASES_PROCESSES(F), CASES_MONITORS(F), CASES_SELECT(F),      \
        CASES_THREADS(F), CASES_TIME(F), CASES_PRINT(F), CASES_SYSTEM(F), CASES_CRASHES(F)

#endif
