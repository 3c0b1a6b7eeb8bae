package agentapi

// Container is one of a container engine, as far as an approval is for it.
type Container struct {
	Engine string `json:"engine"` // its socket
	// Name is the container's, or, of one that compose made, PROJECT/SERVICE.
	Name    string `json:"name"`
	Image   string `json:"image"`   // as it was named; another one may be called so tomorrow
	ImageID string `json:"imageId"` // which image that is
}

// Same says whether an approval for one is an approval for the other.
func (c Container) Same(other Container) bool {
	c.Image = other.Image
	return c == other
}

// ContainerShown begins what a container is called in place of a program.
const ContainerShown = "container "

// String is the container in place of the name of a program.
func (c Container) String() string { return ContainerShown + c.Name + " (" + c.Image + ")" }
