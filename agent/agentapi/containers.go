package agentapi

import "porchlight/internal/words"

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

// String is the container in place of the name of a program, with the beginning of the image's
// id: two images may have one name, and what the owner has seen is compared by this.
func (c Container) String() string {
	return ContainerShown + c.Name + " (" + c.Image + " " + c.ImageID[:min(12, len(c.ImageID))] + ")"
}

// ContainersTrouble is what keeps containers from the addresses that they ask for.
type ContainersTrouble struct {
	// Away is true where their engine cannot be asked: apps that were approved for containers
	// then get no visitors on a connection that is new.
	Away  bool       `json:"away,omitempty"`
	Words words.Text `json:"words"`
}
