// Command porchlight-desktop is Porchlight's menu-bar app.
package main

import "porchlight/desktop"

func main() { desktop.Main() }
