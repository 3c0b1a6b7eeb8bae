package words

// germanAgent has what the agent tells its owner.
var germanAgent = map[string]string{}
