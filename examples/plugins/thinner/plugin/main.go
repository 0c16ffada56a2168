// The element as a plug-in: GOOS=wasip1 GOARCH=wasm go build -buildmode=c-shared.
package main

import (
	"outflow.example/thinner"
	"outflow.example/thinner/outflow"
)

func init() { outflow.Register(&thinner.Thinner{}) }

func main() {}
