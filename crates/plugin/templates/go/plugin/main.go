// The element as a plug-in.
package main

import (
	element "NAME"
	"NAME/outflow"
)

func init() { outflow.Register(&element.Element{}) }

func main() {}
