// Package queuestorageextension is a storage extension in front of another one, for the queues of exporters. While the other one cannot be
// written, because the disk is full, a queue goes on: what it holds is still sent, and a bounded amount of new data waits in memory.
//
// Without it, the exporters' persistent queue (exporterhelper 0.161) loses data then: it notes on disk what it is about to send, and drops an
// item when that note cannot be written, so that a single sender that comes free empties the queue into nothing. And each item that is
// refused counts as waiting until the queue has run empty, which an idle queue never does: it stays full when the disk is free again.
package queuestorageextension

//go:generate go tool -modfile=../../tools/mdatagen/go.mod mdatagen metadata.yaml
