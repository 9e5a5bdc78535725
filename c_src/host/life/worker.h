/* Threads that run the library's code: calls that came by the control port, destructors, callbacks.
 */
#ifndef TAME_HOST_WORKER_H
#define TAME_HOST_WORKER_H

/* The stack of a VM's normal scheduler, as it is by default (+sss 128 kilowords). */
#define WORKER_STACK_BYTES (1024u * 1024)

/* What workers do: calls, and what must not run in the thread that reads the control port. */
struct task {
    struct task *next;
    void (*run)(struct task *task); /* frees it */
};

/* Starts count workers, once. */
void worker_start(int count);
int worker_count(void);

/* A thread of its own with a worker's stack. Returns 0, or an error number: there is none. */
int worker_thread(void *(*main)(void *), void *arg);

/* Puts a task in line. It may come from any thread, and belongs to the workers now. */
void worker_do(struct task *task);

/* Between these two, worker_do_after_call puts tasks off: worker_end_call does them, in this thread,
 * and what they put off in turn. Elsewhere it is worker_do. So a destructor never runs inside of the
 * call that let go of its object, and has run when the caller gets the reply. */
void worker_begin_call(void);
void worker_do_after_call(struct task *task);
void worker_end_call(void);

#endif
