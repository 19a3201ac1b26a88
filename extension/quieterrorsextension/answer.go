package quieterrorsextension

import (
	"encoding/json"
	"io"
	"mime"
	"net/http"
	"strconv"

	"google.golang.org/genproto/googleapis/rpc/status"
	"google.golang.org/grpc/codes"
	"google.golang.org/protobuf/proto"
)

// problem is what an error answer says instead of its text: a code of gRPC, as OTLP/HTTP wants it, and a message.
// https://opentelemetry.io/docs/specs/otlp/#failures
func problem(httpStatus int) (codes.Code, string) {
	switch httpStatus {
	case http.StatusBadRequest:
		return codes.InvalidArgument, "the request is not valid OTLP, or was refused for good; what is wrong with it is not said, since that would quote it"
	case http.StatusUnauthorized:
		return codes.Unauthenticated, "not authenticated"
	case http.StatusForbidden:
		return codes.PermissionDenied, "not permitted"
	case http.StatusNotFound:
		return codes.NotFound, "no such path"
	case http.StatusMethodNotAllowed:
		return codes.Unimplemented, "method not allowed: use POST"
	case http.StatusRequestEntityTooLarge:
		return codes.ResourceExhausted, "the request is too large: send smaller batches"
	case http.StatusUnsupportedMediaType:
		return codes.InvalidArgument, "unsupported media type: use application/x-protobuf or application/json"
	case http.StatusTooManyRequests:
		return codes.ResourceExhausted, "too much at once: send it again later"
	case http.StatusBadGateway, http.StatusServiceUnavailable, http.StatusGatewayTimeout:
		return codes.Unavailable, "not available now: send it again later"
	}
	if httpStatus >= http.StatusInternalServerError {
		return codes.Internal, "internal error"
	}
	return codes.InvalidArgument, "the request was refused"
}

// quiet lets answers below 400 pass and replaces the body of others. The status and headers such as Retry-After stay.
type quiet struct {
	http.ResponseWriter
	protobuf bool // the form of the request, and so of the answer
	replaced bool
	wrote    bool
}

// Unwrap is for http.ResponseController.
func (q *quiet) Unwrap() http.ResponseWriter { return q.ResponseWriter }

// ReadFrom keeps io.Copy from going round Write.
func (q *quiet) ReadFrom(r io.Reader) (int64, error) {
	return io.Copy(struct{ io.Writer }{q}, r)
}

func (q *quiet) Write(b []byte) (int, error) {
	if !q.wrote {
		q.WriteHeader(http.StatusOK)
	}
	if q.replaced {
		return len(b), nil
	}
	return q.ResponseWriter.Write(b)
}

func (q *quiet) WriteHeader(code int) {
	if code < http.StatusBadRequest || q.wrote {
		q.wrote = q.wrote || code >= http.StatusOK // 1xx come before the answer
		q.ResponseWriter.WriteHeader(code)
		return
	}
	q.wrote, q.replaced = true, true
	grpcCode, message := problem(code)
	contentType := "application/json"
	body, err := json.Marshal(map[string]any{"code": int(grpcCode), "message": message})
	if q.protobuf {
		contentType = "application/x-protobuf"
		body, err = proto.Marshal(&status.Status{Code: int32(grpcCode), Message: message})
	}
	if err != nil {
		body = nil
	}
	h := q.Header()
	h.Set("Content-Type", contentType)
	h.Set("Content-Length", strconv.Itoa(len(body)))
	q.ResponseWriter.WriteHeader(code)
	_, _ = q.ResponseWriter.Write(body)
}

// isProtobuf tells the form of a request.
func isProtobuf(r *http.Request) bool {
	t, _, err := mime.ParseMediaType(r.Header.Get("Content-Type"))
	return err == nil && t == "application/x-protobuf"
}
