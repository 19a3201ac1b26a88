/* A simulated libnvidia-ml.so.1: the driver is a text file (path in NVML_SIM), read again when it has been replaced.
 *
 * Scenario lines (# starts a comment):
 *   init CODE                    what nvmlInit answers, 0 by default; 9 is "driver not loaded"
 *   now US                       time for values that grow; without it, the machine's
 *   gpu N                        a GPU; mig N I gi=G  its I-th MIG device
 *   set SEL KEY VALUE... [rate=R]  SEL is N or N/I for a MIG device; a key that is not set is not supported
 *   lost N                       the GPU has fallen off the bus
 *   fail FUNCTION CODE           the function fails
 *   hang FUNCTION                the function does not return until the scenario is replaced by one without this line
 *   xid SEQ N CODE [gi=G]        an XID; each SEQ is delivered once to an event set that was made before it appeared
 */
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include "nvml.h"

struct nvmlDevice_st { int gpu, mig; };
struct nvmlEventSet_st { int used, last; };
struct nvmlGpmSample_st { int used, gpu, gi; };
typedef struct { int gpu, mig; char key[32], text[96]; double num, rate; } kv;

static struct {
    int init; long long now;
    int n; int gpu[16]; int lost[16];
    int nmig; struct { int gpu, i, gi; } mig[64];
    int nkv; kv kv[2048];
    int nfail; struct { char name[64]; int code; } fail[16], hang[16]; int nhang;
    int nx; struct { int seq, gpu, code, gi; } x[256];
} W;
static pthread_mutex_t mu = PTHREAD_MUTEX_INITIALIZER;
static ino_t seen_ino; static struct timespec seen_time;
static struct nvmlDevice_st devices[16][9];
static struct nvmlEventSet_st sets[64];
static struct nvmlGpmSample_st samples[256];
static int inits;

static void load(void) {
    const char *path = getenv("NVML_SIM");
    struct stat st;
    if (!path || stat(path, &st)) { memset(&W, 0, sizeof W); W.init = NVML_ERROR_DRIVER_NOT_LOADED; return; }
    if (st.st_ino == seen_ino && !memcmp(&st.st_mtim, &seen_time, sizeof seen_time)) return;
    seen_ino = st.st_ino; seen_time = st.st_mtim;
    memset(&W, 0, sizeof W);
    FILE *fp = fopen(path, "r");
    char line[512];
    while (fp && fgets(line, sizeof line, fp)) {
        char *hash = strchr(line, '#'); if (hash) *hash = 0;
        char *w[32], *save = NULL; int n = 0, gi = -1; double rate = 0;
        for (char *t = strtok_r(line, " \t\r\n", &save); t && n < 32; t = strtok_r(NULL, " \t\r\n", &save)) w[n++] = t;
        while (n > 1 && (sscanf(w[n - 1], "rate=%lf", &rate) == 1 || sscanf(w[n - 1], "gi=%d", &gi) == 1)) n--;
        if (!n) continue;
#define IS(name) (!strcmp(w[0], name))
        if (IS("init")) W.init = atoi(w[1]);
        else if (IS("now")) W.now = atoll(w[1]);
        else if (IS("gpu")) W.gpu[W.n++] = atoi(w[1]);
        else if (IS("lost")) W.lost[atoi(w[1])] = 1;
        else if (IS("mig")) { W.mig[W.nmig].gpu = atoi(w[1]); W.mig[W.nmig].i = atoi(w[2]); W.mig[W.nmig++].gi = gi; }
        else if (IS("set")) {
            kv *k = &W.kv[W.nkv++];
            k->mig = -1; sscanf(w[1], "%d/%d", &k->gpu, &k->mig);
            strncpy(k->key, w[2], 31); k->rate = rate;
            for (int i = 3; i < n; i++) { if (i > 3) strcat(k->text, " "); strncat(k->text, w[i], 90 - strlen(k->text)); }
            k->num = atof(k->text);
        }
        else if (IS("fail")) { strncpy(W.fail[W.nfail].name, w[1], 63); W.fail[W.nfail++].code = atoi(w[2]); }
        else if (IS("hang")) strncpy(W.hang[W.nhang++].name, w[1], 63);
        else if (IS("xid")) { W.x[W.nx].seq = atoi(w[1]); W.x[W.nx].gpu = atoi(w[2]); W.x[W.nx].code = atoi(w[3]); W.x[W.nx++].gi = gi; }
        else { fprintf(stderr, "simulated libnvidia-ml: unknown line: %s\n", w[0]); abort(); }
    }
    if (fp) fclose(fp);
}
static long long now_us(void) {
    if (W.now) return W.now;
    struct timespec t; clock_gettime(CLOCK_REALTIME, &t);
    return t.tv_sec * 1000000LL + t.tv_nsec / 1000;
}
static nvmlReturn_t enter(const char *fn, nvmlDevice_t d) {
    pthread_mutex_lock(&mu);
    load();
    for (int stuck = 1; stuck;) {
        stuck = 0;
        for (int i = 0; i < W.nhang; i++) stuck |= !strcmp(W.hang[i].name, fn);
        if (!stuck) break;
        struct timespec t = {0, 1000000};
        pthread_mutex_unlock(&mu); nanosleep(&t, NULL); pthread_mutex_lock(&mu);
        load();
    }
    if (!inits) return NVML_ERROR_UNINITIALIZED;
    for (int i = 0; i < W.nfail; i++) if (!strcmp(W.fail[i].name, fn)) return W.fail[i].code;
    if (d.handle && W.lost[d.handle->gpu]) return NVML_ERROR_GPU_IS_LOST;
    return NVML_SUCCESS;
}
#define SIM __attribute__((visibility("default")))
#define LEAVE(r) do { nvmlReturn_t leaving_ = (r); pthread_mutex_unlock(&mu); return leaving_; } while (0)
#define NODEV ((nvmlDevice_t){0})
#define ENTER(d) do { nvmlReturn_t entered_ = enter(__func__, d); if (entered_ != NVML_SUCCESS) LEAVE(entered_); } while (0)

static kv *get(nvmlDevice_t d, const char *key) {
    for (int i = 0; i < W.nkv; i++) if (W.kv[i].gpu == d.handle->gpu && W.kv[i].mig == d.handle->mig && !strcmp(W.kv[i].key, key)) return &W.kv[i];
    return NULL;
}
static double num(kv *k) { return k->num + k->rate * (double)(now_us() % 1000000000000LL) / 1e6; }
static nvmlReturn_t number(nvmlDevice_t d, const char *key, double *v) { kv *k = get(d, key); if (!k) return NVML_ERROR_NOT_SUPPORTED; *v = num(k); return NVML_SUCCESS; }
static nvmlReturn_t string(nvmlDevice_t d, const char *key, char *out, unsigned n) { kv *k = get(d, key); if (!k) return NVML_ERROR_NOT_SUPPORTED; snprintf(out, n, "%s", k->text); return NVML_SUCCESS; }

SIM nvmlReturn_t nvmlInit_v2(void) { pthread_mutex_lock(&mu); load(); if (W.init) LEAVE(W.init); inits++; LEAVE(NVML_SUCCESS); }
SIM nvmlReturn_t nvmlShutdown(void) { pthread_mutex_lock(&mu); if (!inits) LEAVE(NVML_ERROR_UNINITIALIZED); inits--; LEAVE(NVML_SUCCESS); }
SIM const char *nvmlErrorString(nvmlReturn_t r) { return "simulated error"; }
SIM nvmlReturn_t nvmlSystemGetDriverVersion(char *v, unsigned n) { ENTER(NODEV); snprintf(v, n, "580.65.06"); LEAVE(NVML_SUCCESS); }
/* What is left of ours, for tests of leaks. */
SIM nvmlReturn_t nvmlSystemGetNVMLVersion(char *v, unsigned n) {
    pthread_mutex_lock(&mu);
    int s = 0, g = 0;
    for (int i = 0; i < 64; i++) s += sets[i].used;
    for (int i = 0; i < 256; i++) g += samples[i].used;
    snprintf(v, n, "inits:%d;sets:%d;samples:%d", inits, s, g);
    LEAVE(NVML_SUCCESS);
}
SIM nvmlReturn_t nvmlDeviceGetCount_v2(unsigned *n) { ENTER(NODEV); *n = W.n; LEAVE(NVML_SUCCESS); }
SIM nvmlReturn_t nvmlDeviceGetHandleByIndex_v2(unsigned i, nvmlDevice_t *d) {
    ENTER(NODEV);
    if (i >= (unsigned)W.n) LEAVE(NVML_ERROR_INVALID_ARGUMENT);
    d->handle = &devices[W.gpu[i]][8]; d->handle->gpu = W.gpu[i]; d->handle->mig = -1;
    LEAVE(W.lost[W.gpu[i]] ? NVML_ERROR_GPU_IS_LOST : NVML_SUCCESS);
}
#define STRING(fn, key) SIM nvmlReturn_t fn(nvmlDevice_t d, char *v, unsigned n) { ENTER(d); LEAVE(string(d, key, v, n)); }
STRING(nvmlDeviceGetUUID, "uuid")
STRING(nvmlDeviceGetName, "name")
STRING(nvmlDeviceGetSerial, "serial")
#define UNSIGNED(fn, key) SIM nvmlReturn_t fn(nvmlDevice_t d, unsigned *v) { ENTER(d); double f = 0; nvmlReturn_t r = number(d, key, &f); *v = (unsigned)f; LEAVE(r); }
UNSIGNED(nvmlDeviceGetMinorNumber, "minor")
UNSIGNED(nvmlDeviceGetPowerUsage, "power")
UNSIGNED(nvmlDeviceGetEnforcedPowerLimit, "limit")
UNSIGNED(nvmlDeviceGetFanSpeed, "fan")
UNSIGNED(nvmlDeviceGetPcieReplayCounter, "replay")
UNSIGNED(nvmlDeviceGetCurrPcieLinkGeneration, "gen")
UNSIGNED(nvmlDeviceGetMaxPcieLinkGeneration, "maxgen")
UNSIGNED(nvmlDeviceGetCurrPcieLinkWidth, "width")
UNSIGNED(nvmlDeviceGetMaxPcieLinkWidth, "maxwidth")
SIM nvmlReturn_t nvmlDeviceGetPerformanceState(nvmlDevice_t d, nvmlPstates_t *v) { ENTER(d); double f = 0; nvmlReturn_t r = number(d, "pstate", &f); *v = (nvmlPstates_t)f; LEAVE(r); }
SIM nvmlReturn_t nvmlDeviceGetPciInfo_v3(nvmlDevice_t d, nvmlPciInfo_t *p) { ENTER(d); LEAVE(string(d, "bus", p->busId, sizeof p->busId)); }
SIM nvmlReturn_t nvmlDeviceGetUtilizationRates(nvmlDevice_t d, nvmlUtilization_t *u) {
    ENTER(d); double a = 0, b = 0; nvmlReturn_t r = number(d, "util", &a); number(d, "memutil", &b); u->gpu = a; u->memory = b; LEAVE(r);
}
static nvmlReturn_t codec(const char *fn, nvmlDevice_t d, const char *key, unsigned *u, unsigned *p) {
    nvmlReturn_t r = enter(fn, d); if (r != NVML_SUCCESS) LEAVE(r);
    double a = 0; r = number(d, key, &a); *u = a; *p = 100000; LEAVE(r);
}
SIM nvmlReturn_t nvmlDeviceGetEncoderUtilization(nvmlDevice_t d, unsigned *u, unsigned *p) { return codec(__func__, d, "enc", u, p); }
SIM nvmlReturn_t nvmlDeviceGetDecoderUtilization(nvmlDevice_t d, unsigned *u, unsigned *p) { return codec(__func__, d, "dec", u, p); }
SIM nvmlReturn_t nvmlDeviceGetMemoryInfo_v2(nvmlDevice_t d, nvmlMemory_v2_t *m) {
    ENTER(d); double t = 0, f = 0, u = 0, v = 0; nvmlReturn_t r = number(d, "total", &t);
    number(d, "free", &f); number(d, "used", &u); number(d, "reserved", &v);
    m->total = t * 1048576; m->free = f * 1048576; m->used = u * 1048576; m->reserved = v * 1048576; LEAVE(r);
}
static nvmlReturn_t keyed(const char *fn, nvmlDevice_t d, const char *prefix, int n, unsigned *v) {
    nvmlReturn_t r = enter(fn, d); if (r != NVML_SUCCESS) LEAVE(r);
    char key[40]; snprintf(key, sizeof key, "%s%d", prefix, n); double f = 0; r = number(d, key, &f); *v = f; LEAVE(r);
}
SIM nvmlReturn_t nvmlDeviceGetClockInfo(nvmlDevice_t d, nvmlClockType_t c, unsigned *v) { return keyed(__func__, d, "clock", c, v); }
SIM nvmlReturn_t nvmlDeviceGetMaxClockInfo(nvmlDevice_t d, nvmlClockType_t c, unsigned *v) { return keyed(__func__, d, "maxclock", c, v); }
SIM nvmlReturn_t nvmlDeviceGetTemperature(nvmlDevice_t d, nvmlTemperatureSensors_t s, unsigned *v) { return keyed(__func__, d, "temp", s, v); }
SIM nvmlReturn_t nvmlDeviceGetTemperatureThreshold(nvmlDevice_t d, nvmlTemperatureThresholds_t s, unsigned *v) { return keyed(__func__, d, "threshold", s, v); }
SIM nvmlReturn_t nvmlDeviceGetCurrentClocksEventReasons(nvmlDevice_t d, unsigned long long *v) { ENTER(d); double f = 0; nvmlReturn_t r = number(d, "reasons", &f); *v = f; LEAVE(r); }
SIM nvmlReturn_t nvmlDeviceGetTotalEnergyConsumption(nvmlDevice_t d, unsigned long long *v) { ENTER(d); double f = 0; nvmlReturn_t r = number(d, "energy", &f); *v = f; LEAVE(r); }
SIM nvmlReturn_t nvmlDeviceGetTotalEccErrors(nvmlDevice_t d, nvmlMemoryErrorType_t e, nvmlEccCounterType_t c, unsigned long long *v) {
    ENTER(d); char key[32]; snprintf(key, sizeof key, "ecc%d%d", e, c); double f = 0; nvmlReturn_t r = number(d, key, &f); *v = f; LEAVE(r);
}
SIM nvmlReturn_t nvmlDeviceGetRowRemapperHistogram(nvmlDevice_t d, nvmlRowRemapperHistogramValues_t *h) {
    ENTER(d); kv *k = get(d, "spare"); if (!k) LEAVE(NVML_ERROR_NOT_SUPPORTED);
    sscanf(k->text, "%u %u %u %u %u", &h->max, &h->high, &h->partial, &h->low, &h->none); LEAVE(NVML_SUCCESS);
}
SIM nvmlReturn_t nvmlDeviceGetFieldValues(nvmlDevice_t d, int n, nvmlFieldValue_t *v) {
    ENTER(d);
    for (int i = 0; i < n; i++) {
        char key[32]; snprintf(key, sizeof key, "fv%u", v[i].fieldId); double f = 0;
        v[i].nvmlReturn = number(d, key, &f); v[i].timestamp = now_us();
        if (v[i].fieldId == 82) { v[i].valueType = NVML_VALUE_TYPE_UNSIGNED_INT; v[i].value.uiVal = f; }
        else { v[i].valueType = NVML_VALUE_TYPE_UNSIGNED_LONG_LONG; v[i].value.ullVal = f; }
    }
    LEAVE(NVML_SUCCESS);
}
SIM nvmlReturn_t nvmlDeviceGetNvLinkState(nvmlDevice_t d, unsigned link, nvmlEnableState_t *s) {
    ENTER(d); char key[32]; snprintf(key, sizeof key, "link%u", link); double f = 0;
    nvmlReturn_t r = number(d, key, &f); *s = f; LEAVE(r == NVML_SUCCESS ? r : link ? NVML_ERROR_INVALID_ARGUMENT : r);
}
SIM nvmlReturn_t nvmlDeviceGetMigMode(nvmlDevice_t d, unsigned *now, unsigned *pending) {
    ENTER(d); *now = 0; for (int i = 0; i < W.nmig; i++) *now |= W.mig[i].gpu == d.handle->gpu; *pending = *now; LEAVE(NVML_SUCCESS);
}
SIM nvmlReturn_t nvmlDeviceGetMaxMigDeviceCount(nvmlDevice_t d, unsigned *n) { ENTER(d); *n = 7; LEAVE(NVML_SUCCESS); }
SIM nvmlReturn_t nvmlDeviceGetMigDeviceHandleByIndex(nvmlDevice_t d, unsigned i, nvmlDevice_t *m) {
    ENTER(d);
    for (int j = 0; j < W.nmig; j++) if (W.mig[j].gpu == d.handle->gpu && W.mig[j].i == (int)i) {
        m->handle = &devices[d.handle->gpu][i]; m->handle->gpu = d.handle->gpu; m->handle->mig = i; LEAVE(NVML_SUCCESS);
    }
    LEAVE(NVML_ERROR_NOT_FOUND);
}
SIM nvmlReturn_t nvmlDeviceGetGpuInstanceId(nvmlDevice_t d, unsigned *id) {
    ENTER(d); for (int j = 0; j < W.nmig; j++) if (W.mig[j].gpu == d.handle->gpu && W.mig[j].i == d.handle->mig) { *id = W.mig[j].gi; LEAVE(NVML_SUCCESS); }
    LEAVE(NVML_ERROR_NOT_FOUND);
}
static int last_seq(void) { int s = 0; for (int i = 0; i < W.nx; i++) if (W.x[i].seq > s) s = W.x[i].seq; return s; }
SIM nvmlReturn_t nvmlEventSetCreate(nvmlEventSet_t *s) {
    ENTER(NODEV); for (int i = 0; i < 64; i++) if (!sets[i].used) { sets[i].used = 1; sets[i].last = last_seq(); s->handle = &sets[i]; LEAVE(NVML_SUCCESS); }
    LEAVE(NVML_ERROR_INSUFFICIENT_RESOURCES);
}
SIM nvmlReturn_t nvmlEventSetFree(nvmlEventSet_t s) { ENTER(NODEV); s.handle->used = 0; LEAVE(NVML_SUCCESS); }
SIM nvmlReturn_t nvmlDeviceRegisterEvents(nvmlDevice_t d, unsigned long long e, nvmlEventSet_t s) { ENTER(d); LEAVE(NVML_SUCCESS); }
SIM nvmlReturn_t nvmlEventSetWait_v2(nvmlEventSet_t s, nvmlEventData_t *e, unsigned ms) {
    ENTER(NODEV);
    for (int i = 0; i < W.nx; i++) if (W.x[i].seq > s.handle->last) {
        s.handle->last = W.x[i].seq; memset(e, 0, sizeof *e);
        e->device.handle = &devices[W.x[i].gpu][8]; e->eventType = nvmlEventTypeXidCriticalError; e->eventData = W.x[i].code;
        e->gpuInstanceId = W.x[i].gi < 0 ? 0xFFFFFFFF : (unsigned)W.x[i].gi; e->computeInstanceId = 0xFFFFFFFF;
        LEAVE(NVML_SUCCESS);
    }
    LEAVE(NVML_ERROR_TIMEOUT);
}
SIM nvmlReturn_t nvmlGpmQueryDeviceSupport(nvmlDevice_t d, nvmlGpmSupport_t *s) { ENTER(d); s->isSupportedDevice = get(d, "gpm") != NULL; LEAVE(NVML_SUCCESS); }
SIM nvmlReturn_t nvmlGpmSampleAlloc(nvmlGpmSample_t *s) {
    ENTER(NODEV); for (int i = 0; i < 256; i++) if (!samples[i].used) { samples[i].used = 1; s->handle = &samples[i]; LEAVE(NVML_SUCCESS); }
    LEAVE(NVML_ERROR_MEMORY);
}
SIM nvmlReturn_t nvmlGpmSampleFree(nvmlGpmSample_t s) { ENTER(NODEV); s.handle->used = 0; LEAVE(NVML_SUCCESS); }
SIM nvmlReturn_t nvmlGpmSampleGet(nvmlDevice_t d, nvmlGpmSample_t s) { ENTER(d); s.handle->gpu = d.handle->gpu; s.handle->gi = -1; LEAVE(NVML_SUCCESS); }
SIM nvmlReturn_t nvmlGpmMigSampleGet(nvmlDevice_t d, unsigned gi, nvmlGpmSample_t s) { ENTER(d); s.handle->gpu = d.handle->gpu; s.handle->gi = gi; LEAVE(NVML_SUCCESS); }
SIM nvmlReturn_t nvmlGpmMetricsGet(nvmlGpmMetricsGet_t *g) {
    ENTER(NODEV);
    if (g->version != NVML_GPM_METRICS_GET_VERSION || !g->sample1.handle || !g->sample2.handle || g->sample1.handle == g->sample2.handle) LEAVE(NVML_ERROR_INVALID_ARGUMENT);
    struct nvmlDevice_st at = {g->sample2.handle->gpu, -1};
    for (int j = 0; j < W.nmig; j++) if (W.mig[j].gpu == at.gpu && W.mig[j].gi == g->sample2.handle->gi) at.mig = W.mig[j].i;
    for (unsigned i = 0; i < g->numMetrics; i++) {
        char key[32]; snprintf(key, sizeof key, "gpm%u", g->metrics[i].metricId);
        g->metrics[i].nvmlReturn = number((nvmlDevice_t){&at}, key, &g->metrics[i].value);
    }
    LEAVE(NVML_SUCCESS);
}
