// Package boltfile looks whether a bbolt file is sound, and saves what is readable of one that is not.
//
// bbolt panics over a damaged file in a goroutine of its own (v1.5.0, DB.freepages), which nobody can recover from, and its Tx.Check takes the
// same way. So the file is read here, by its format (https://github.com/etcd-io/bbolt, internal/common: page.go, meta.go), and given to bbolt only
// when every page that can be reached is in order.
package boltfile
