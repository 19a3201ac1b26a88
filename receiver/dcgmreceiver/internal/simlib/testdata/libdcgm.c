/* A simulated libdcgm.so.4: the host engine is a text file.
 *
 * Every call reads the scenario (path in DCGM_SIM) again when the file has been replaced, so a test changes the world
 * under a live client by renaming a new file over it. Built by the tests against the headers of go-dcgm.
 *
 * Scenario lines (# starts a comment):
 *   now US                      the engine's clock in microseconds; without it, the machine's
 *   engine up|down              down: connecting fails and every call answers -21
 *   epoch N                     another number is another engine: old connections answer -21 and their groups are gone
 *   gpu ID [status=S]           a GPU; status as DcgmEntityStatus_t, 1 is OK, 4 lost
 *   gi ID gpu=G nvml=N slices=S a MIG instance; ci ID gi=I a compute instance
 *   field SEL FID i|d|s VALUE [status=S] [rate=R] [age=US]   SEL is gpu:N, gi:N, ci:N, link:GPU/LINK, or TYPE:*
 *   xid SEL US CODE             an XID error at an instant
 *   unknown FID                 the library and the engine do not know the field
 *   fail FUNCTION CODE [TIMES]  the function fails; TIMES counts down, for ever without it
 *   failfield FID CODE          watching the field fails
 *   failentity SEL CODE         watching the entity fails
 *   slow FUNCTION MS            the function takes this long, or until its connection is closed
 *   prof CODE                   what asking for metric groups answers
 *   profgroup MAJOR MINOR F...  a metric group
 *   multipass                   watching fields of two minors of one major fails with -38
 *   health GPU BIT RESULT       an incident of a health check
 */
#include <errno.h>
#include <pthread.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include "dcgm_agent.h"
#include "dcgm_fields.h"
#include "dcgm_structs.h"

#define MAXF 4096
#define MAXG 512
typedef struct { int type, id; } ent;
typedef struct { ent e; int fid; char kind; char text[64]; double num; int64_t inum; int status; double rate; int64_t age; } field;
typedef struct { ent e; int64_t at; int code; } xidline;
typedef struct { char name[48]; int code, times; } failline;
typedef struct { int fid; ent e; int code; } failwatch;
typedef struct { int major, minor, n; int f[64]; } profgroup;

static struct {
    int64_t now; int up, epoch, multipass, prof;
    int ngpu; struct { int id, status; } gpu[32];
    int ngi; struct { int id, gpu, nvml, slices; } gi[64];
    int nci; struct { int id, gi; } ci[64];
    int nf; field f[MAXF];
    int nx; xidline x[512];
    int nu; int unknown[256];
    int nfail; failline fail[32];
    int nslow; failline slow[32];
    int nfw; failwatch fw[64];
    int npg; profgroup pg[32];
    int nh; struct { int gpu, bit, result; } h[64];
} W;

static pthread_mutex_t mu = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t changed = PTHREAD_COND_INITIALIZER;
static ino_t seen_ino; static struct timespec seen_time;

static struct { int used, n; dcgmHandle_t h; dcgmGroupEntityPair_t e[256]; } groups[MAXG];
static struct { int used, n; dcgmHandle_t h; unsigned short f[256]; char name[64]; } fgroups[MAXG];
static struct { int used; dcgmHandle_t h; int g, fg; int64_t freq; } watches[MAXG];
static struct { int used, epoch; } handles[4096];
static int inits, inflight, next_handle = 1;

static ent sel(const char *s) {
    ent e = {DCGM_FE_NONE, -1};
    const char *c = strchr(s, ':');
    if (!c) return e;
    if (!strncmp(s, "gpu", 3)) e.type = DCGM_FE_GPU;
    if (!strncmp(s, "gi", 2)) e.type = DCGM_FE_GPU_I;
    if (!strncmp(s, "ci", 2)) e.type = DCGM_FE_GPU_CI;
    if (!strncmp(s, "link", 4)) {
        int g = 0, l = 0;
        e.type = DCGM_FE_LINK;
        if (sscanf(c + 1, "%d/%d", &g, &l) == 2) e.id = DCGM_FE_GPU | l << 8 | g << 24;
        return e;
    }
    e.id = c[1] == '*' ? -1 : atoi(c + 1);
    return e;
}

static void load(void) {
    const char *path = getenv("DCGM_SIM");
    struct stat st;
    if (!path || stat(path, &st)) { memset(&W, 0, sizeof W); return; }
    if (st.st_ino == seen_ino && !memcmp(&st.st_mtim, &seen_time, sizeof seen_time)) return;
    seen_ino = st.st_ino; seen_time = st.st_mtim;
    memset(&W, 0, sizeof W);
    W.up = 1;
    FILE *fp = fopen(path, "r");
    if (!fp) return;
    char line[512];
    while (fgets(line, sizeof line, fp)) {
        char *hash = strchr(line, '#'); if (hash) *hash = 0;
        char *w[80]; int n = 0; char *save = NULL;
        for (char *t = strtok_r(line, " \t\r\n", &save); t && n < 80; t = strtok_r(NULL, " \t\r\n", &save)) w[n++] = t;
        if (!n) continue;
        int status = 0, gpu = 0, nvml = 0, slices = 1, gi = 0; double rate = 0; long long age = 0;
        int positional = n;
        for (int i = n - 1; i > 0; i--) {
            if (sscanf(w[i], "status=%d", &status) == 1 || sscanf(w[i], "rate=%lf", &rate) == 1 || sscanf(w[i], "age=%lld", &age) == 1 ||
                sscanf(w[i], "gpu=%d", &gpu) == 1 || sscanf(w[i], "nvml=%d", &nvml) == 1 || sscanf(w[i], "slices=%d", &slices) == 1 || sscanf(w[i], "gi=%d", &gi) == 1) positional = i;
            else break;
        }
#define IS(name) (!strcmp(w[0], name))
        if (IS("now")) W.now = atoll(w[1]);
        else if (IS("engine")) W.up = !strcmp(w[1], "up");
        else if (IS("epoch")) W.epoch = atoi(w[1]);
        else if (IS("multipass")) W.multipass = 1;
        else if (IS("prof")) W.prof = atoi(w[1]);
        else if (IS("gpu")) { W.gpu[W.ngpu].id = atoi(w[1]); W.gpu[W.ngpu++].status = status ? status : 1; }
        else if (IS("gi")) { W.gi[W.ngi].id = atoi(w[1]); W.gi[W.ngi].gpu = gpu; W.gi[W.ngi].nvml = nvml; W.gi[W.ngi++].slices = slices; }
        else if (IS("ci")) { W.ci[W.nci].id = atoi(w[1]); W.ci[W.nci++].gi = gi; }
        else if (IS("field") && W.nf < MAXF) {
            field *f = &W.f[W.nf++];
            f->e = sel(w[1]); f->fid = atoi(w[2]); f->kind = w[3][0]; f->status = status; f->rate = rate; f->age = age;
            for (int i = 4; i < positional; i++) { if (i > 4) strncat(f->text, " ", 60 - strlen(f->text)); strncat(f->text, w[i], 60 - strlen(f->text)); }
            f->num = atof(f->text); f->inum = atoll(f->text);
        }
        else if (IS("xid")) { W.x[W.nx].e = sel(w[1]); W.x[W.nx].at = atoll(w[2]); W.x[W.nx++].code = atoi(w[3]); }
        else if (IS("unknown")) W.unknown[W.nu++] = atoi(w[1]);
        else if (IS("fail")) { failline *f = &W.fail[W.nfail++]; strncpy(f->name, w[1], 47); f->code = atoi(w[2]); f->times = n > 3 ? atoi(w[3]) : -1; }
        else if (IS("slow")) { failline *f = &W.slow[W.nslow++]; strncpy(f->name, w[1], 47); f->code = atoi(w[2]); }
        else if (IS("failfield")) { W.fw[W.nfw].fid = atoi(w[1]); W.fw[W.nfw].e.type = -1; W.fw[W.nfw++].code = atoi(w[2]); }
        else if (IS("failentity")) { W.fw[W.nfw].fid = -1; W.fw[W.nfw].e = sel(w[1]); W.fw[W.nfw++].code = atoi(w[2]); }
        else if (IS("profgroup")) { profgroup *p = &W.pg[W.npg++]; p->major = atoi(w[1]); p->minor = atoi(w[2]); for (int i = 3; i < n; i++) p->f[p->n++] = atoi(w[i]); }
        else if (IS("health")) { W.h[W.nh].gpu = atoi(w[1]); W.h[W.nh].bit = atoi(w[2]); W.h[W.nh++].result = atoi(w[3]); }
        else { fprintf(stderr, "simulated libdcgm: unknown line: %s\n", w[0]); abort(); }
    }
    fclose(fp);
}

static int64_t now_us(void) {
    if (W.now) return W.now;
    struct timespec t; clock_gettime(CLOCK_REALTIME, &t);
    return (int64_t)t.tv_sec * 1000000 + t.tv_nsec / 1000;
}

static void forget(dcgmHandle_t h) {
    for (int i = 0; i < MAXG; i++) {
        if (groups[i].used && groups[i].h == h) groups[i].used = 0;
        if (fgroups[i].used && fgroups[i].h == h) fgroups[i].used = 0;
        if (watches[i].used && watches[i].h == h) watches[i].used = 0;
    }
}

static int alive(dcgmHandle_t h) {
    if (h <= 0 || h >= 4096 || !handles[h].used) return 0;
    if (!W.up || handles[h].epoch != W.epoch) { forget(h); return 0; }
    return 1;
}

/* enter locks, loads the scenario and applies fail and slow; a call on a connection that is closed meanwhile ends. */
static dcgmReturn_t enter(const char *fn, dcgmHandle_t h, int needs) {
    pthread_mutex_lock(&mu);
    load();
    if (!inits) return DCGM_ST_UNINITIALIZED;
    for (int i = 0; i < W.nslow; i++) {
        if (strcmp(W.slow[i].name, fn)) continue;
        struct timespec until; clock_gettime(CLOCK_REALTIME, &until);
        until.tv_sec += W.slow[i].code / 1000; until.tv_nsec += (long)(W.slow[i].code % 1000) * 1000000;
        if (until.tv_nsec >= 1000000000) { until.tv_sec++; until.tv_nsec -= 1000000000; }
        inflight++;
        while ((!needs || alive(h)) && pthread_cond_timedwait(&changed, &mu, &until) != ETIMEDOUT) {}
        inflight--;
        pthread_cond_broadcast(&changed);
        break;
    }
    if (needs && !alive(h)) return DCGM_ST_CONNECTION_NOT_VALID;
    for (int i = 0; i < W.nfail; i++)
        if (!strcmp(W.fail[i].name, fn) && W.fail[i].times) { if (W.fail[i].times > 0) W.fail[i].times--; return W.fail[i].code; }
    return DCGM_ST_OK;
}
#define LEAVE(r) do { dcgmReturn_t leaving_ = (r); pthread_mutex_unlock(&mu); return leaving_; } while (0)
#define ENTER(fn, h) do { dcgmReturn_t entered_ = enter(fn, h, 1); if (entered_ != DCGM_ST_OK) LEAVE(entered_); } while (0)
#define SIM __attribute__((visibility("default")))

SIM dcgmReturn_t dcgmInit(void) { pthread_mutex_lock(&mu); load(); inits++; LEAVE(DCGM_ST_OK); }

SIM dcgmReturn_t dcgmShutdown(void) {
    pthread_mutex_lock(&mu);
    while (inflight) pthread_cond_wait(&changed, &mu);
    inits = 0; /* the real one counts too; a client that shuts down starts from nothing */
    LEAVE(DCGM_ST_OK);
}

static dcgmReturn_t connect_any(const char *fn, dcgmHandle_t *out) {
    dcgmReturn_t r = enter(fn, 0, 0);
    if (r != DCGM_ST_OK) LEAVE(r);
    if (!W.up || next_handle >= 4096) LEAVE(DCGM_ST_CONNECTION_NOT_VALID);
    *out = next_handle++;
    handles[*out].used = 1; handles[*out].epoch = W.epoch;
    LEAVE(DCGM_ST_OK);
}
SIM dcgmReturn_t dcgmConnect_v2(const char *ip, dcgmConnectV2Params_t *p, dcgmHandle_t *h) {
    if (p->version != dcgmConnectV2Params_version2) return DCGM_ST_VER_MISMATCH;
    return connect_any("dcgmConnect_v2", h);
}
SIM dcgmReturn_t dcgmConnect_v3(const char *s, dcgmConnectV3Params_t *p, dcgmHandle_t *h) { return connect_any("dcgmConnect_v3", h); }
SIM dcgmReturn_t dcgmStartEmbedded(dcgmOperationMode_t m, dcgmHandle_t *h) { return connect_any("dcgmStartEmbedded", h); }
SIM dcgmReturn_t dcgmDisconnect(dcgmHandle_t h) {
    pthread_mutex_lock(&mu);
    load();
    if (h > 0 && h < 4096) handles[h].used = 0;
    forget(h);
    pthread_cond_broadcast(&changed);
    LEAVE(DCGM_ST_OK);
}
SIM dcgmReturn_t dcgmStopEmbedded(dcgmHandle_t h) { return dcgmDisconnect(h); }

SIM const char *errorString(dcgmReturn_t r) {
    switch (r) {
    case DCGM_ST_OK: return "Success";
    case DCGM_ST_CONNECTION_NOT_VALID: return "Host engine connection invalid/disconnected";
    case DCGM_ST_UNINITIALIZED: return "DCGM is not initialized";
    case DCGM_ST_REQUIRES_ROOT: return "Host engine is running as non-root";
    case DCGM_ST_PROFILING_NOT_SUPPORTED: return "Profiling is not supported for this group of GPUs or GPU";
    case DCGM_ST_PROFILING_MULTI_PASS: return "Profiling metrics cannot be collected in a single pass";
    case DCGM_ST_DUPLICATE_KEY: return "Duplicate Key passed to function";
    default: return "Simulated error";
    }
}

SIM dcgmReturn_t dcgmHostengineVersionInfo(dcgmHandle_t h, dcgmVersionInfo_t *v) {
    ENTER("dcgmHostengineVersionInfo", h);
    int g = 0, f = 0, w = 0, c = 0;
    for (int i = 0; i < MAXG; i++) { g += groups[i].used; f += fgroups[i].used; w += watches[i].used; }
    for (int i = 0; i < 4096; i++) c += handles[i].used;
    snprintf(v->rawBuildInfoString, sizeof v->rawBuildInfoString, "version:4.6.1;groups:%d;fieldgroups:%d;watches:%d;handles:%d", g, f, w, c);
    LEAVE(DCGM_ST_OK);
}

SIM dcgmReturn_t dcgmGetAllSupportedDevices(dcgmHandle_t h, unsigned int *ids, int *count) {
    ENTER("dcgmGetAllSupportedDevices", h);
    *count = 0;
    for (int i = 0; i < W.ngpu; i++) if (W.gpu[i].status == 1) ids[(*count)++] = W.gpu[i].id;
    LEAVE(DCGM_ST_OK);
}
SIM dcgmReturn_t dcgmGetEntityGroupEntities(dcgmHandle_t h, dcgm_field_entity_group_t t, dcgm_field_eid_t *ids, int *count, unsigned int flags) {
    ENTER("dcgmGetEntityGroupEntities", h);
    *count = 0;
    if (t == DCGM_FE_GPU) for (int i = 0; i < W.ngpu; i++) ids[(*count)++] = W.gpu[i].id;
    LEAVE(DCGM_ST_OK);
}
static int gpu_status(int id) { for (int i = 0; i < W.ngpu; i++) if (W.gpu[i].id == id) return W.gpu[i].status; return 0; }
SIM dcgmReturn_t dcgmGetGpuStatus(dcgmHandle_t h, unsigned int id, DcgmEntityStatus_t *s) {
    ENTER("dcgmGetGpuStatus", h);
    *s = gpu_status(id);
    LEAVE(DCGM_ST_OK);
}
SIM dcgmReturn_t dcgmGetGpuInstanceHierarchy(dcgmHandle_t h, dcgmMigHierarchy_v2 *m) {
    ENTER("dcgmGetGpuInstanceHierarchy", h);
    if (m->version != dcgmMigHierarchy_version2) LEAVE(DCGM_ST_VER_MISMATCH);
    m->count = 0;
    for (int i = 0; i < W.ngi; i++) {
        dcgmMigHierarchyInfo_v2 *e = &m->entityList[m->count++];
        e->entity.entityGroupId = DCGM_FE_GPU_I; e->entity.entityId = W.gi[i].id;
        e->parent.entityGroupId = DCGM_FE_GPU; e->parent.entityId = W.gi[i].gpu;
        e->info.nvmlInstanceId = W.gi[i].nvml; e->info.nvmlProfileSlices = W.gi[i].slices;
    }
    for (int i = 0; i < W.nci; i++) {
        dcgmMigHierarchyInfo_v2 *e = &m->entityList[m->count++];
        e->entity.entityGroupId = DCGM_FE_GPU_CI; e->entity.entityId = W.ci[i].id;
        e->parent.entityGroupId = DCGM_FE_GPU_I; e->parent.entityId = W.ci[i].gi;
    }
    LEAVE(DCGM_ST_OK);
}

SIM dcgmReturn_t dcgmGroupCreate(dcgmHandle_t h, dcgmGroupType_t t, const char *name, dcgmGpuGrp_t *id) {
    ENTER("dcgmGroupCreate", h);
    int mine = 0;
    for (int i = 0; i < MAXG; i++) mine += groups[i].used && groups[i].h == h;
    if (mine >= 64) LEAVE(DCGM_ST_MAX_LIMIT);
    for (int i = 0; i < MAXG; i++) if (!groups[i].used) { groups[i].used = 1; groups[i].n = 0; groups[i].h = h; *id = i + 1; LEAVE(DCGM_ST_OK); }
    LEAVE(DCGM_ST_MAX_LIMIT);
}
SIM dcgmReturn_t dcgmGroupAddEntity(dcgmHandle_t h, dcgmGpuGrp_t g, dcgm_field_entity_group_t t, dcgm_field_eid_t id) {
    ENTER("dcgmGroupAddEntity", h);
    if (g < 1 || g > MAXG || !groups[g - 1].used || groups[g - 1].n >= 256) LEAVE(DCGM_ST_BADPARAM);
    groups[g - 1].e[groups[g - 1].n].entityGroupId = t; groups[g - 1].e[groups[g - 1].n++].entityId = id;
    LEAVE(DCGM_ST_OK);
}
SIM dcgmReturn_t dcgmGroupDestroy(dcgmHandle_t h, dcgmGpuGrp_t g) {
    ENTER("dcgmGroupDestroy", h);
    if (g < 1 || g > MAXG || !groups[g - 1].used) LEAVE(DCGM_ST_BADPARAM);
    groups[g - 1].used = 0;
    LEAVE(DCGM_ST_OK);
}
static int unknown(int f) { for (int i = 0; i < W.nu; i++) if (W.unknown[i] == f) return 1; return 0; }
SIM dcgmReturn_t dcgmFieldGroupCreate(dcgmHandle_t h, int n, const unsigned short *f, const char *name, dcgmFieldGrp_t *id) {
    ENTER("dcgmFieldGroupCreate", h);
    if (n < 1 || n > DCGM_MAX_FIELD_IDS_PER_FIELD_GROUP) LEAVE(DCGM_ST_BADPARAM);
    for (int i = 0; i < n; i++) if (unknown(f[i])) LEAVE(DCGM_ST_UNKNOWN_FIELD);
    int mine = 0;
    for (int i = 0; i < MAXG; i++) {
        if (fgroups[i].used && !strcmp(fgroups[i].name, name)) LEAVE(DCGM_ST_DUPLICATE_KEY);
        mine += fgroups[i].used && fgroups[i].h == h;
    }
    if (mine >= 64) LEAVE(DCGM_ST_MAX_LIMIT);
    for (int i = 0; i < MAXG; i++) if (!fgroups[i].used) {
        fgroups[i].used = 1; fgroups[i].n = n; fgroups[i].h = h;
        memcpy(fgroups[i].f, f, n * sizeof *f); strncpy(fgroups[i].name, name, 63);
        *id = i + 1; LEAVE(DCGM_ST_OK);
    }
    LEAVE(DCGM_ST_MAX_LIMIT);
}
SIM dcgmReturn_t dcgmFieldGroupDestroy(dcgmHandle_t h, dcgmFieldGrp_t g) {
    ENTER("dcgmFieldGroupDestroy", h);
    if (g < 1 || g > MAXG || !fgroups[g - 1].used) LEAVE(DCGM_ST_BADPARAM);
    fgroups[g - 1].used = 0;
    LEAVE(DCGM_ST_OK);
}

static int minor_of(int fid, int *major) { for (int i = 0; i < W.npg; i++) for (int j = 0; j < W.pg[i].n; j++) if (W.pg[i].f[j] == fid) { *major = W.pg[i].major; return W.pg[i].minor; } return -1; }

SIM dcgmReturn_t dcgmWatchFields(dcgmHandle_t h, dcgmGpuGrp_t g, dcgmFieldGrp_t fg, long long freq, double age, int keep) {
    ENTER("dcgmWatchFields", h);
    if (g < 1 || g > MAXG || !groups[g - 1].used || fg < 1 || fg > MAXG || !fgroups[fg - 1].used) LEAVE(DCGM_ST_BADPARAM);
    if (freq < 100000) LEAVE(DCGM_ST_BADPARAM);
    for (int k = 0; k < W.nfw; k++) {
        if (W.fw[k].fid >= 0) { for (int i = 0; i < fgroups[fg - 1].n; i++) if (fgroups[fg - 1].f[i] == W.fw[k].fid) LEAVE(W.fw[k].code); }
        else for (int i = 0; i < groups[g - 1].n; i++)
            if (groups[g - 1].e[i].entityGroupId == (unsigned)W.fw[k].e.type && groups[g - 1].e[i].entityId == (unsigned)W.fw[k].e.id && fgroups[fg - 1].n > 1) LEAVE(W.fw[k].code);
    }
    if (W.multipass) for (int i = 0; i < fgroups[fg - 1].n; i++) for (int j = 0; j < i; j++) {
        int ma = -1, mb = -1, a = minor_of(fgroups[fg - 1].f[i], &ma), b = minor_of(fgroups[fg - 1].f[j], &mb);
        if (a >= 0 && b >= 0 && ma == mb && a != b) LEAVE(DCGM_ST_PROFILING_MULTI_PASS);
    }
    for (int i = 0; i < MAXG; i++) if (!watches[i].used) { watches[i].used = 1; watches[i].h = h; watches[i].g = g; watches[i].fg = fg; watches[i].freq = freq; LEAVE(DCGM_ST_OK); }
    LEAVE(DCGM_ST_MAX_LIMIT);
}
SIM dcgmReturn_t dcgmUnwatchFields(dcgmHandle_t h, dcgmGpuGrp_t g, dcgmFieldGrp_t fg) {
    ENTER("dcgmUnwatchFields", h);
    for (int i = 0; i < MAXG; i++) if (watches[i].used && watches[i].h == h && watches[i].g == g && watches[i].fg == fg) watches[i].used = 0;
    LEAVE(DCGM_ST_OK);
}
SIM dcgmReturn_t dcgmUpdateAllFields(dcgmHandle_t h, int wait) { ENTER("dcgmUpdateAllFields", h); LEAVE(DCGM_ST_OK); }

static field *lookup(int type, int id, int fid) {
    field *any = NULL;
    for (int i = 0; i < W.nf; i++) if (W.f[i].fid == fid && W.f[i].e.type == type) {
        if (W.f[i].e.id == id) return &W.f[i];
        if (W.f[i].e.id == -1) any = &W.f[i];
    }
    return any;
}
static int64_t watched(int type, int id, int fid) { /* shortest update interval, 0 when not watched */
    int64_t best = 0;
    for (int i = 0; i < MAXG; i++) if (watches[i].used)
        for (int a = 0; a < fgroups[watches[i].fg - 1].n; a++) if (fgroups[watches[i].fg - 1].f[a] == fid)
            for (int b = 0; b < groups[watches[i].g - 1].n; b++)
                if (groups[watches[i].g - 1].e[b].entityGroupId == (unsigned)type && groups[watches[i].g - 1].e[b].entityId == (unsigned)id)
                    if (!best || watches[i].freq < best) best = watches[i].freq;
    return best;
}
static int lost(int type, int id) {
    if (type == DCGM_FE_GPU) { int s = gpu_status(id); return s == 4 || s == 7; }
    return 0;
}
/* fill writes a field's value at an instant and returns its status. */
static int fill(int type, int id, int fid, int64_t at, unsigned short *ft, int64_t *ts, void *value) {
    field *f = lookup(type, id, fid);
    *ts = at;
    if (unknown(fid)) { *ft = DCGM_FT_INT64; *(int64_t *)value = DCGM_INT64_NOT_SUPPORTED; return DCGM_ST_UNKNOWN_FIELD; }
    if (!f) { /* what NVML calls not supported */
        int prof = fid > 1000 && fid < 1100;
        *ft = prof ? DCGM_FT_DOUBLE : DCGM_FT_INT64;
        if (prof) *(double *)value = DCGM_FP64_NOT_SUPPORTED; else *(int64_t *)value = DCGM_INT64_NOT_SUPPORTED;
        return DCGM_ST_OK;
    }
    *ts = at - f->age;
    double grown = f->rate * (double)(at % 1000000000000LL) / 1e6;
    switch (f->kind) {
    case 'i': *ft = DCGM_FT_INT64; *(int64_t *)value = lost(type, id) ? DCGM_INT64_BLANK : f->inum + (int64_t)grown; break;
    case 'd': *ft = DCGM_FT_DOUBLE; *(double *)value = lost(type, id) ? DCGM_FP64_BLANK : f->num + grown; break;
    default: *ft = DCGM_FT_STRING; strncpy(value, lost(type, id) ? DCGM_STR_BLANK : f->text, 63);
    }
    return f->status;
}
SIM dcgmReturn_t dcgmEntitiesGetLatestValues(dcgmHandle_t h, dcgmGroupEntityPair_t *e, unsigned int ne, unsigned short *f, unsigned int nf, unsigned int flags, dcgmFieldValue_v2 *v) {
    ENTER("dcgmEntitiesGetLatestValues", h);
    for (unsigned i = 0; i < ne; i++) for (unsigned j = 0; j < nf; j++, v++) {
        memset(v, 0, sizeof *v);
        v->version = dcgmFieldValue_version2; v->entityGroupId = e[i].entityGroupId; v->entityId = e[i].entityId; v->fieldId = f[j];
        v->status = fill(e[i].entityGroupId, e[i].entityId, f[j], now_us(), &v->fieldType, &v->ts, &v->value);
        if (!(flags & DCGM_FV_FLAG_LIVE_DATA) && !watched(e[i].entityGroupId, e[i].entityId, f[j])) { v->status = DCGM_ST_NOT_WATCHED; v->ts = 0; }
    }
    LEAVE(DCGM_ST_OK);
}
SIM dcgmReturn_t dcgmGetValuesSince_v2(dcgmHandle_t h, dcgmGpuGrp_t g, dcgmFieldGrp_t fg, long long since, long long *next, dcgmFieldValueEntityEnumeration_f cb, void *user) {
    ENTER("dcgmGetValuesSince_v2", h);
    if (g < 1 || g > MAXG || !groups[g - 1].used || fg < 1 || fg > MAXG || !fgroups[fg - 1].used) LEAVE(DCGM_ST_BADPARAM);
    int64_t now = now_us(), last = since;
    static dcgmFieldValue_v1 v[4096];
    for (int i = 0; i < groups[g - 1].n; i++) {
        dcgmGroupEntityPair_t *e = &groups[g - 1].e[i];
        for (int j = 0; j < fgroups[fg - 1].n; j++) {
            int fid = fgroups[fg - 1].f[j], n = 0;
            int64_t freq = watched(e->entityGroupId, e->entityId, fid);
            if (fid == DCGM_FI_DEV_XID_ERROR) {
                for (int k = 0; k < W.nx; k++) if (W.x[k].at >= since && W.x[k].at <= now && W.x[k].e.type == (int)e->entityGroupId && W.x[k].e.id == (int)e->entityId) {
                    memset(&v[n], 0, sizeof v[n]); v[n].fieldId = fid; v[n].fieldType = DCGM_FT_INT64; v[n].ts = W.x[k].at; v[n].value.i64 = W.x[k].code; n++;
                }
            } else if (freq) {
                int64_t t = since <= now - 3600000000LL ? now - now % freq - 10 * freq : since + (freq - since % freq) % freq;
                for (; t <= now && n < 4096; t += freq) {
                    memset(&v[n], 0, sizeof v[n]); v[n].fieldId = fid;
                    v[n].status = fill(e->entityGroupId, e->entityId, fid, t, &v[n].fieldType, &v[n].ts, &v[n].value); n++;
                }
            }
            for (int k = 0; k < n; k++) if (v[k].ts >= last) last = v[k].ts + 1;
            if (n) cb(e->entityGroupId, e->entityId, v, n, user);
        }
    }
    *next = last;
    LEAVE(DCGM_ST_OK);
}

SIM dcgm_field_meta_p DcgmFieldGetById(unsigned short id) {
    static dcgm_field_meta_t meta[DCGM_FI_MAX_FIELDS + 1];
    pthread_mutex_lock(&mu);
    load();
    dcgm_field_meta_p out = NULL;
    if (id < DCGM_FI_MAX_FIELDS && !unknown(id)) { meta[id].fieldId = id; meta[id].fieldType = id > 1000 && id < 1100 ? DCGM_FT_DOUBLE : DCGM_FT_INT64; out = &meta[id]; }
    pthread_mutex_unlock(&mu);
    return out;
}
SIM dcgmReturn_t dcgmProfGetSupportedMetricGroups(dcgmHandle_t h, dcgmProfGetMetricGroups_t *m) {
    ENTER("dcgmProfGetSupportedMetricGroups", h);
    if (W.prof) LEAVE(W.prof);
    m->numMetricGroups = 0;
    for (int i = 0; i < W.npg; i++) {
        dcgmProfMetricGroupInfo_v2 *p = &m->metricGroups[m->numMetricGroups++];
        p->majorId = W.pg[i].major; p->minorId = W.pg[i].minor; p->numFieldIds = W.pg[i].n;
        for (int j = 0; j < W.pg[i].n; j++) p->fieldIds[j] = W.pg[i].f[j];
    }
    LEAVE(DCGM_ST_OK);
}
SIM dcgmReturn_t dcgmHealthSet(dcgmHandle_t h, dcgmGpuGrp_t g, dcgmHealthSystems_t s) { ENTER("dcgmHealthSet", h); LEAVE(DCGM_ST_OK); }
SIM dcgmReturn_t dcgmHealthCheck(dcgmHandle_t h, dcgmGpuGrp_t g, dcgmHealthResponse_t *r) {
    ENTER("dcgmHealthCheck", h);
    if (r->version != dcgmHealthResponse_version5) LEAVE(DCGM_ST_VER_MISMATCH);
    r->incidentCount = 0;
    for (int i = 0; i < W.nh; i++) {
        dcgmIncidentInfo_t *in = &r->incidents[r->incidentCount++];
        in->system = 1 << W.h[i].bit; in->health = W.h[i].result;
        in->entityInfo.entityGroupId = DCGM_FE_GPU; in->entityInfo.entityId = W.h[i].gpu;
    }
    LEAVE(DCGM_ST_OK);
}
