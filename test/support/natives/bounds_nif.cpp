/* A library that takes what it is told to take: memory, CPU time, files, threads; and says where it
 * runs. Each function that ends does so because of what it was refused, in a way that libraries have.
 * MODULE is its module's name. */
#include <atomic>
#include <cerrno>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <erl_nif.h>
#include <fcntl.h>
#include <new>
#include <pthread.h>
#include <sched.h>
#include <string>
#include <sys/mman.h>
#include <sys/resource.h>
#include <thread>
#include <unistd.h>
#include <vector>

namespace
{

std::vector<void *> kept;
std::atomic<bool> may_end;

ERL_NIF_TERM atom(ErlNifEnv *env, const char *name)
{
    return enif_make_atom(env, name);
}

int number(ErlNifEnv *env, ERL_NIF_TERM term)
{
    int value = 0;
    enif_get_int(env, term, &value);
    return value;
}

size_t bytes(ErlNifEnv *env, ERL_NIF_TERM mib)
{
    return static_cast<size_t>(number(env, mib)) << 20;
}

std::string name(ErlNifEnv *env, ERL_NIF_TERM term)
{
    char text[64] = "";
    enif_get_atom(env, term, text, sizeof text, ERL_NIF_LATIN1);
    return text;
}

void *mapped(size_t size)
{
    void *memory = mmap(nullptr, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    return memory == MAP_FAILED ? nullptr : memory;
}

void *thrown(size_t size)
{
    try {
        return ::operator new(size);
    } catch (const std::bad_alloc &) {
        return nullptr;
    }
}

/* (Mib, How) -> ok | enomem. The memory is kept. */
ERL_NIF_TERM take(ErlNifEnv *env, int, const ERL_NIF_TERM argv[])
{
    const size_t size = bytes(env, argv[0]);
    const std::string how = name(env, argv[1]);
    void *memory = how == "malloc"       ? malloc(size)
                   : how == "enif_alloc" ? enif_alloc(size)
                   : how == "mmap"       ? mapped(size)
                                         : thrown(size);

    if (memory == nullptr)
        return atom(env, "enomem");
    memset(memory, 1, size);
    kept.push_back(memory);
    return atom(env, "ok");
}

void *never_checked(void *size)
{
    auto *memory = static_cast<char *>(malloc(*static_cast<size_t *>(size)));
    memset(memory, 1, *static_cast<size_t *>(size));
    return memory;
}

/* (Mib, How) -> ok, or the end of the process, where there is no such memory. */
ERL_NIF_TERM must_take(ErlNifEnv *env, int, const ERL_NIF_TERM argv[])
{
    size_t size = bytes(env, argv[0]);
    const std::string how = name(env, argv[1]);
    ERL_NIF_TERM term;
    ErlNifTid tid;
    char thread_name[] = "taker";

    if (how == "unchecked") {
        kept.push_back(never_checked(&size));
    } else if (how == "abort" || how == "exit") {
        void *memory = malloc(size);
        if (memory == nullptr) {
            fprintf(stderr, "no memory for %zu bytes\n", size);
            if (how == "exit")
                exit(1);
            abort();
        }
        kept.push_back(memory);
    } else if (how == "bad_alloc") {
        kept.push_back(::operator new(size));
    } else if (how == "term") {
        term = enif_make_list(env, 0);
        for (size_t i = 0; i < size / 16; i++)
            term = enif_make_list_cell(env, term, term);
    } else if (how == "thread") {
        if (enif_thread_create(thread_name, &tid, never_checked, &size, nullptr) == 0)
            enif_thread_join(tid, nullptr);
    }
    return atom(env, "ok");
}

/* (Kind) -> never: default, or with the kernel's warning ignored. */
ERL_NIF_TERM spin(ErlNifEnv *env, int, const ERL_NIF_TERM argv[])
{
    volatile unsigned long count = 0;

    if (name(env, argv[0]) == "ignoring")
        signal(SIGXCPU, SIG_IGN);
    for (;;)
        count = count + 1;
}

/* (Count, Exits) -> {How many could be opened, errno of the next}; they are closed again. Exits:
 * abort when one could not. */
ERL_NIF_TERM open_files(ErlNifEnv *env, int, const ERL_NIF_TERM argv[])
{
    std::vector<int> files;
    int error = 0;

    for (int i = 0; i < number(env, argv[0]); i++) {
        const int file = open("/dev/null", O_RDONLY | O_CLOEXEC);
        if (file < 0) {
            error = errno;
            if (name(env, argv[1]) == "abort")
                abort();
            break;
        }
        files.push_back(file);
    }
    for (int file : files)
        close(file);
    return enif_make_tuple2(env, enif_make_int(env, static_cast<int>(files.size())),
                            enif_make_int(env, error));
}

void *wait_to_end(void *arg)
{
    while (!may_end)
        usleep(500);
    return arg;
}

/* (Count, How) -> {How many could be started, what the next one gave}; they are joined. How: enif,
 * posix, or std, where the exception of the next one is nobody's. */
ERL_NIF_TERM threads(ErlNifEnv *env, int, const ERL_NIF_TERM argv[])
{
    const std::string how = name(env, argv[1]);
    std::vector<pthread_t> posix;
    std::vector<ErlNifTid> enif;
    std::vector<std::thread> std_;
    char thread_name[] = "waits";
    int error = 0, count = number(env, argv[0]), started = 0;

    may_end = false;
    for (; started < count && error == 0; started++) {
        pthread_t thread;
        ErlNifTid tid;
        if (how == "enif" &&
            (error = enif_thread_create(thread_name, &tid, wait_to_end, nullptr, nullptr)) == 0)
            enif.push_back(tid);
        if (how == "posix" && (error = pthread_create(&thread, nullptr, wait_to_end, nullptr)) == 0)
            posix.push_back(thread);
        if (how == "std")
            [&]() noexcept { std_.emplace_back(wait_to_end, nullptr); }();
    }
    may_end = true;
    for (auto &thread : posix)
        pthread_join(thread, nullptr);
    for (auto &tid : enif)
        enif_thread_join(tid, nullptr);
    for (auto &thread : std_)
        thread.join();
    return enif_make_tuple2(env, enif_make_int(env, error == 0 ? started : started - 1),
                            enif_make_int(env, error));
}

/* () -> {OsPid, Nice, [Cpu]} */
ERL_NIF_TERM where(ErlNifEnv *env, int, const ERL_NIF_TERM[])
{
    ERL_NIF_TERM cpus = enif_make_list(env, 0);
    cpu_set_t set;

    CPU_ZERO(&set);
    (void)sched_getaffinity(0, sizeof set, &set);
    for (int cpu = CPU_SETSIZE - 1; cpu >= 0; cpu--) {
        if (CPU_ISSET(cpu, &set))
            cpus = enif_make_list_cell(env, enif_make_int(env, cpu), cpus);
    }
    return enif_make_tuple3(env, enif_make_int(env, getpid()),
                            enif_make_int(env, getpriority(PRIO_PROCESS, 0)), cpus);
}

/* () -> never: a fault that has nothing to do with a limit. */
ERL_NIF_TERM crash(ErlNifEnv *env, int, const ERL_NIF_TERM[])
{
    raise(SIGSEGV);
    return atom(env, "ok");
}

/* (Limit) -> never: writes into the record of crashes that it has reached this limit, and ends. */
ERL_NIF_TERM lie(ErlNifEnv *env, int, const ERL_NIF_TERM argv[])
{
    FILE *maps = fopen("/proc/self/maps", "r");
    char line[512];
    unsigned long from, to;

    while (maps != nullptr && fgets(line, sizeof line, maps) != nullptr) {
        if (strstr(line, "rw-s") != nullptr && strstr(line, "/dev/zero") != nullptr &&
            sscanf(line, "%lx-%lx", &from, &to) == 2) {
            auto *words = reinterpret_cast<int *>(from);
            words[0] = SIGKILL;
            words[6] = number(env, argv[0]); /* crash_record.limit */
        }
    }
    raise(SIGKILL);
    return atom(env, "ok");
}

int load(ErlNifEnv *, void **, ERL_NIF_TERM)
{
    const char *mib = getenv("BOUNDS_LOAD_MIB");

    if (mib != nullptr) {
        size_t size = static_cast<size_t>(atoi(mib)) << 20;
        kept.push_back(never_checked(&size));
    }
    return 0;
}

ErlNifFunc functions[] = {
    {"take", 2, take, 0},
    {"must_take", 2, must_take, ERL_NIF_DIRTY_JOB_CPU_BOUND},
    {"spin", 1, spin, ERL_NIF_DIRTY_JOB_CPU_BOUND},
    {"open_files", 2, open_files, 0},
    {"threads", 2, threads, 0},
    {"where", 0, where, 0},
    {"crash", 0, crash, 0},
    {"lie", 1, lie, 0},
};

} // namespace

#define INIT(module) ERL_NIF_INIT(module, functions, load, nullptr, nullptr, nullptr)
INIT(MODULE)
