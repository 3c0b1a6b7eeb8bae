'use client'

import { useEffect, useState } from 'react'

// Alive shows that the page's scripts run in the browser.
export default function Alive() {
  const [alive, setAlive] = useState(false)
  useEffect(() => setAlive(true), [])
  return alive ? <p data-alive>Alive</p> : null
}
