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

/* The same, but not before the running call of this thread, if there is one, has ended. */
void worker_do_after_call(struct task *task);

/* The running call has ended. */
void worker_call_ended(void);

#endif
