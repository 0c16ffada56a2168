package outflow

import "unsafe"

//go:wasmimport outflow:plugin/host@1.0.0 write
func hostWrite(bytes unsafe.Pointer, count uint32)
