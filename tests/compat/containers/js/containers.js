// Testcontainers' own class on an image: containers.js IMAGE. By the image's tag the class chooses
// KRaft or a ZooKeeper. Prints what was read, at its address outside and inside its network.
'use strict'

const { randomUUID } = require('node:crypto')
const { KafkaContainer } = require('@testcontainers/kafka')
const { Kafka, logLevel } = require('kafkajs')
const { Network } = require('testcontainers')

const PORT = 9093
const PATIENCE_MS = 60_000

async function main(image) {
  const network = await new Network().start()
  try {
    const container = await new KafkaContainer(image).withNetwork(network).withNetworkAliases('broker').start()
    try {
      const topic = `t-${randomUUID()}`
      console.log(`outside: ${await toAndFro(`${container.getHost()}:${container.getMappedPort(PORT)}`, topic)}`)
      const { output } = await container.exec(['kafkalite', 'consume', '-b', 'broker:9092', topic, '--count', '1'])
      console.log(`inside: ${output.trim()}`)
    } finally {
      await container.stop()
    }
  } finally {
    await network.stop()
  }
}

async function toAndFro(bootstrap, topic) {
  const kafka = new Kafka({ brokers: [bootstrap], logLevel: logLevel.ERROR })
  const producer = kafka.producer()
  await producer.connect()
  await producer.send({ topic, messages: [{ value: 'there' }] })
  await producer.disconnect()
  const consumer = kafka.consumer({ groupId: topic })
  await consumer.connect()
  await consumer.subscribe({ topic, fromBeginning: true })
  const end = setTimeout(() => { throw new Error('nothing came') }, PATIENCE_MS)
  const value = await new Promise(resolve => {
    consumer.run({ eachMessage: async ({ message }) => resolve(message.value.toString()) })
  })
  clearTimeout(end)
  await consumer.disconnect()
  return value
}

main(process.argv[2]).catch(error => {
  console.error(error)
  process.exitCode = 1
})
