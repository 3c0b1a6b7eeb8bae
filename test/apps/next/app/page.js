import { count, leave, seen } from './actions.js'
import Alive from './alive.js'
import text from './text.js'

export const dynamic = 'force-dynamic'

export default async function Page() {
  return (
    <>
      <h1>{`${text}: ${await seen()}`}</h1>
      <Alive />
      <form action={count}>
        <button id="count">Count</button>
      </form>
      <form action={leave}>
        <button id="leave">Leave</button>
      </form>
    </>
  )
}
