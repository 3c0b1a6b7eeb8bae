let times = 0

export const load = () => ({ times })

export const actions = { default: () => ({ times: ++times }) }
