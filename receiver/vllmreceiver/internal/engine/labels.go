package engine

import "strings"

// routes are the paths that are told apart; a route is a path of the server's own, but engines print unknown paths as they were asked for, and
// those are anyone's to choose.
var routes = map[string]bool{
	"/v1/chat/completions": true, "/v1/completions": true, "/v1/responses": true, "/v1/messages": true, "/v1/embeddings": true,
	"/v1/models": true, "/v1/score": true, "/v1/rerank": true, "/v2/rerank": true, "/rerank": true, "/score": true, "/pooling": true,
	"/classify": true, "/v1/audio/transcriptions": true, "/v1/audio/translations": true, "/v1/realtime": true, "/generate": true,
	"/tokenize": true, "/detokenize": true, "/invocations": true, "/encode": true, "/flush_cache": true,
	"/infer": true, "/generate_stream": true, "/v1/images/generations": true, "/v1/classify": true,
}

// probes are asked for by machines, this receiver among them, and say nothing of users.
var probes = map[string]bool{
	"/metrics": true, "/health": true, "/healthz": true, "/ping": true, "/health_generate": true, "/readyz": true, "/livez": true,
	"/version": true, "/model_info": true, "/get_model_info": true, "/server_info": true, "/get_server_info": true, "/load": true,
}

func route(path string) (string, bool) {
	path = strings.TrimSuffix(path, "/")
	switch {
	case probes[path]:
		return "", false
	case routes[path]:
		return path, true
	}
	return "other", true
}

// statusClass turns "200" and "2xx" into "2xx".
func statusClass(code string) (string, bool) {
	if len(code) == 3 && code[0] >= '1' && code[0] <= '5' {
		return code[:1] + "xx", true
	}
	return "other", true
}
