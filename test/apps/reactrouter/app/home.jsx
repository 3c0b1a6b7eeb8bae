import { Form } from 'react-router'

let times = 0

export const loader = () => ({ times })

export const action = () => ({ times: ++times })

export default function Home({ loaderData }) {
  return (
    <>
      <h1>{`Counted: ${loaderData.times}`}</h1>
      <Form method="post">
        <button>Count</button>
      </Form>
    </>
  )
}
