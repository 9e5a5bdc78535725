/* The uses of each file, in its order. The prototypes and the table of uses come from here. */
#ifndef THREADS_OPS_H
#define THREADS_OPS_H

#define OPS_TERMS(F)                                                                               \
    F(copy), F(to_binary), F(from_binary), F(hash_phash2), F(hash_internal), F(compare), F(print), \
        F(send_copied), F(send_moved)

#define OPS_MAPS(F) F(map_from_arrays), F(map_put), F(map_update), F(map_iterator)

#define OPS_DATA(F) F(list), F(tuple), F(binary), F(iolist), F(ioq), F(atoms), F(numbers)

#define OPS_EMULATOR(F) F(make_ref), F(unique_integer), F(clocks), F(system_info)

#define OPS_PROCESSES(F)                                                                 \
    F(self), F(whereis), F(alive), F(port_command), F(port_command_null), F(port_alive), \
        F(resource), F(monitor), F(select_event)

#define OPS_CALLS(F) \
    F(consume_timeslice), F(current_alive), F(priv_data), F(schedule_nif), F(raise_and_send)

#define OPS(F) \
    OPS_TERMS(F), OPS_MAPS(F), OPS_DATA(F), OPS_EMULATOR(F), OPS_PROCESSES(F), OPS_CALLS(F)

#endif
