// KafkaJS as a program: client.js PACKAGE BOOTSTRAP.
//
// A line of JSON on standard input is a command, and the line that follows on standard output is
// its answer: {"ok": …} or {"error": "…"}. Bytes are in base64. A program holds at most one member
// of a group and one transactional producer; a test that needs two starts two programs.
'use strict'

const { randomUUID } = require('node:crypto')
const { readFileSync } = require('node:fs')
const readline = require('node:readline')
const [library, bootstrap] = process.argv.slice(2)
const kafkajs = require(library)
const lz4 = require('lz4js')
const xxh32 = require('lz4js/xxh32')
const snappy = require('snappyjs')
const zstd = require('@bokuweb/zstd-wasm')

const DEADLINE_MS = 30_000
const EARLIEST = -2

const clientOf = (address, security) => new kafkajs.Kafka({
  clientId: 'compat', brokers: [address], logLevel: kafkajs.logLevel.NOTHING, retry: { initialRetryTime: 50 },
  ...security,
})
let kafka = clientOf(bootstrap, {})
const codecs = { none: 0, gzip: 1, snappy: 2, lz4: 3, zstd: 4 }

// --- security ---------------------------------------------------------------------------------------

// Has all that follows go to these brokers, in this way.
function secure(c) {
  kafka = clientOf(c.bootstrap, { ...encryption(c.security), ...login(c.security) })
}

function encryption({ protocol, ca, certificate }) {
  if (!protocol.endsWith('SSL')) return {}
  const own = certificate && readFileSync(certificate)
  return { ssl: { ca: [readFileSync(ca)], ...(own && { cert: own, key: own }) } }
}

function login({ mechanism, user, password, token }) {
  if (!mechanism) return {}
  const oauthBearerProvider = async () => ({ value: token })
  return { sasl: { mechanism: mechanism.toLowerCase(), username: user, password, oauthBearerProvider } }
}

// --- codecs, which the library leaves to others ---------------------------------------------------

kafkajs.CompressionCodecs[codecs.snappy] = () => ({
  compress: async encoder => Buffer.from(snappy.compress(encoder.buffer)),
  decompress: async buffer => fromSnappy(buffer),
})
kafkajs.CompressionCodecs[codecs.lz4] = () => ({
  compress: async encoder => withIndependentBlocks(Buffer.from(lz4.compress(encoder.buffer))),
  decompress: async buffer => Buffer.from(lz4.decompress(buffer)),
})
kafkajs.CompressionCodecs[codecs.zstd] = () => ({
  compress: async encoder => { await zstd.init(); return Buffer.from(zstd.compress(encoder.buffer)) },
  decompress: async buffer => { await zstd.init(); return Buffer.from(zstd.decompress(buffer)) },
})

// Java writes blocks behind a header of sixteen bytes, others one raw block.
function fromSnappy(buffer) {
  if (buffer.subarray(1, 7).toString() !== 'SNAPPY') return Buffer.from(snappy.uncompress(buffer))
  const blocks = []
  for (let at = 16; at < buffer.length;) {
    const size = buffer.readUInt32BE(at)
    blocks.push(Buffer.from(snappy.uncompress(buffer.subarray(at + 4, at + 4 + size))))
    at += 4 + size
  }
  return Buffer.concat(blocks)
}

// Brokers insist on blocks that stand alone. One block does, but lz4js does not say so in its header:
// after four bytes of magic come a byte of flags, one of the block size, and their checksum.
function withIndependentBlocks(frame) {
  frame[4] |= 0x20
  frame[6] = xxh32.hash(0, frame, 4, 2) >> 8
  return frame
}

// --- records ----------------------------------------------------------------------------------------

const bytes = text => (text === null || text === undefined ? null : Buffer.from(text, 'base64'))
const text = value => (value === null || value === undefined ? null : Buffer.from(value).toString('base64'))

function toMessage(record, partition) {
  const headers = {}
  for (const { name, value } of record.headers || []) {
    headers[name] = name in headers ? [].concat(headers[name], bytes(value)) : bytes(value)
  }
  const message = { key: bytes(record.key), value: bytes(record.value), headers }
  if (partition >= 0) message.partition = partition
  if (record.timestamp) message.timestamp = String(record.timestamp)
  return message
}

function toRecord(partition, message) {
  const headers = Object.entries(message.headers || {}).flatMap(([name, values]) =>
    (Array.isArray(values) ? values : [values]).map(value => ({ name, value: text(value) })))
  return {
    partition, offset: Number(message.offset), timestamp: Number(message.timestamp),
    key: text(message.key), value: text(message.value), headers,
  }
}

// Where records lie is told by batch: without a partition each is sent alone.
async function send(sender, c) {
  const groups = c.partition >= 0 ? [c.records] : c.records.map(record => [record])
  const placed = []
  for (const group of groups) {
    const [at] = await sender.send({
      topic: c.topic, acks: c.acks === '1' ? 1 : -1, compression: codecs[c.codec || 'none'],
      messages: group.map(record => toMessage(record, c.partition)),
    })
    const base = Number(at.baseOffset ?? at.offset)
    group.forEach((record, index) => placed.push({ partition: at.partition, offset: base + index, key: record.key }))
  }
  return placed
}

async function produce(c) {
  const { DefaultPartitioner, JavaCompatiblePartitioner } = kafkajs.Partitioners
  const createPartitioner = JavaCompatiblePartitioner || DefaultPartitioner
  const producer = kafka.producer({ createPartitioner, retry: { retries: 5, initialRetryTime: 50 } })
  await producer.connect()
  try {
    return await send(producer, c)
  } finally {
    await producer.disconnect()
  }
}

// --- consumers ----------------------------------------------------------------------------------------

// A message is offered until a command takes it or its partition is taken away, so none is held.
class Member {
  constructor(c, groupId) {
    this.topic = c.topic
    this.offered = []
    this.next = new Map()
    this.partitions = []
    this.assigned = 0
    this.isClosed = false
    this.consumer = kafka.consumer({
      groupId, readUncommitted: !c.committed, maxWaitTimeInMs: 200, heartbeatInterval: 200, sessionTimeout: 10_000,
      maxBytesPerPartition: c.max_bytes || 1 << 20, retry: { initialRetryTime: 50 },
    })
    this.consumer.on(this.consumer.events.GROUP_JOIN, ({ payload }) => {
      this.partitions = payload.memberAssignment[this.topic] || []
      this.assigned += this.partitions.length
    })
    this.consumer.on(this.consumer.events.CRASH, ({ payload }) => {
      if (payload.restart === false) this.crash = payload.error // and it is not tried again
    })
  }

  async run() {
    await this.consumer.connect()
    await this.consumer.subscribe({ topic: this.topic, fromBeginning: true })
    await this.consumer.run({ autoCommit: false, eachBatchAutoResolve: false, eachBatch: batch => this.offerAll(batch) })
  }

  async offerAll({ batch, heartbeat, resolveOffset, isRunning, isStale }) {
    for (const message of batch.messages) {
      if (!isRunning() || isStale() || this.isClosed) return
      await this.offer(batch.partition, message, heartbeat)
      if (this.isClosed) return
      resolveOffset(message.offset)
    }
  }

  async offer(partition, message, heartbeat) {
    const offer = { record: toRecord(partition, message), isTaken: false }
    this.offered.push(offer)
    try {
      while (!offer.isTaken && !this.isClosed) {
        await pause(10)
        await heartbeat()
      }
    } finally {
      this.offered = this.offered.filter(each => each !== offer)
    }
  }

  async take(c) {
    const taken = []
    for (const end = Date.now() + c.wait_ms; taken.length < c.count && Date.now() < end;) {
      const offer = this.offered.find(each => !each.isTaken)
      if (!offer) {
        if (this.crash) throw this.crash
        await pause(5)
        continue
      }
      offer.isTaken = true
      taken.push(offer.record)
      this.next.set(offer.record.partition, offer.record.offset + 1)
    }
    return taken
  }

  async commit() {
    const offsets = [...this.next].map(([partition, offset]) => ({ topic: this.topic, partition, offset: String(offset) }))
    this.next.clear()
    await this.consumer.commitOffsets(offsets)
  }

  async leave() {
    this.isClosed = true
    await this.consumer.disconnect()
  }
}

const pause = ms => new Promise(resolve => setTimeout(resolve, ms))

// The library reads in groups only.
async function read(c) {
  const reader = new Member(c, `read-${randomUUID()}`)
  const taken = []
  try {
    await reader.run()
    const end = Date.now() + c.wait_ms
    while (taken.length < c.count && Date.now() < end) {
      const more = await reader.take({ count: 1, wait_ms: end - Date.now() })
      taken.push(...more.filter(each => each.partition === c.partition && each.offset >= c.offset))
    }
  } finally {
    await reader.leave()
  }
  return taken
}

let member
let producer
let transaction

// --- administration -------------------------------------------------------------------------------------

const entries = configs => Object.entries(configs || {}).map(([name, value]) => ({ name, value }))
const resource = c => ({ type: (kafkajs.ConfigResourceTypes || kafkajs.ResourceTypes).TOPIC, name: c.topic })

const administration = {
  create: async (admin, c) => {
    const isNew = await admin.createTopics({
      waitForLeaders: true,
      topics: [{ topic: c.topic, numPartitions: c.partitions, replicationFactor: 1, configEntries: entries(c.configs) }],
    })
    if (!isNew) throw new Error('the topic already exists')
  },
  delete: (admin, c) => admin.deleteTopics({ topics: [c.topic] }),
  topics: admin => admin.listTopics(),
  partitions: async (admin, c) => {
    const { topics } = await admin.fetchTopicMetadata({ topics: [c.topic] })
    return topics[0].partitions.map(each => each.partitionId)
  },
  grow: (admin, c) => admin.createPartitions({ topicPartitions: [{ topic: c.topic, count: c.partitions }] }),
  configs: async (admin, c) => {
    const described = await admin.describeConfigs({ includeSynonyms: false, resources: [resource(c)] })
    return Object.fromEntries(described.resources[0].configEntries.map(each => [each.configName, each.configValue]))
  },
  alter: (admin, c) => admin.alterConfigs({ resources: [{ ...resource(c), configEntries: entries(c.configs) }] }),
  trim: async (admin, c) => {
    await admin.fetchTopicOffsets(c.topic) // or it would not know the topic
    await admin.deleteTopicRecords({
      topic: c.topic, partitions: [{ partition: c.partition, offset: String(c.offset) }],
    })
  },
  look_up: async (admin, c) => {
    const found = c.timestamp < 0
      ? await admin.fetchTopicOffsets(c.topic)
      : await admin.fetchTopicOffsetsByTimestamp(c.topic, c.timestamp)
    const at = found.find(each => each.partition === c.partition)
    return Number(c.timestamp === EARLIEST ? at.low : at.offset)
  },
  groups: async admin => (await admin.listGroups()).groups.map(each => each.groupId),
  group: async (admin, c) => {
    const [group] = (await admin.describeGroups([c.group])).groups
    return { state: group.state, members: group.members.length }
  },
  forget: (admin, c) => admin.deleteGroups([c.group]),
  offset: async (admin, c) => {
    const found = await admin.fetchOffsets({ groupId: c.group, topics: [c.topic] })
    return Number(found[0].partitions.find(each => each.partition === c.partition).offset)
  },
  move: (admin, c) => admin.setOffsets({
    groupId: c.group, topic: c.topic, partitions: [{ partition: c.partition, offset: String(c.offset) }],
  }),
}

async function administer(act, c) {
  const admin = kafka.admin()
  await admin.connect()
  try {
    return await act(admin, c)
  } finally {
    await admin.disconnect()
  }
}

// --- commands -----------------------------------------------------------------------------------------

const commands = {
  secure,
  produce,
  read,
  join: c => {
    member = new Member(c, c.group)
    return member.run()
  },
  poll: c => member.take(c),
  assignment: () => ({ partitions: member.partitions, assigned: member.assigned }),
  commit: () => member.commit(),
  leave: () => member.leave(),
  init: async c => {
    producer = kafka.producer({
      transactionalId: c.id, transactionTimeout: c.timeout_ms, maxInFlightRequests: 1, idempotent: true,
      retry: { retries: 5, initialRetryTime: 50 },
    })
    await producer.connect()
  },
  begin: async () => { transaction = await producer.transaction() },
  send: c => send(transaction, c),
  offsets: c => transaction.sendOffsets({
    consumerGroupId: c.group,
    topics: [{ topic: c.topic, partitions: [{ partition: c.partition, offset: String(c.offset) }] }],
  }),
  end: () => transaction.commit(),
  abort: () => transaction.abort(),
}
for (const [name, act] of Object.entries(administration)) commands[name] = c => administer(act, c)

async function answer(line) {
  try {
    const c = { partition: -1, offset: 0, wait_ms: DEADLINE_MS, ...JSON.parse(line) }
    if (!(c.do in commands)) throw new Error(`this library has no ${c.do}`)
    return { ok: (await commands[c.do](c)) ?? null }
  } catch (error) {
    return { error: reason(error) }
  }
}

// The innermost cause, by the broker's word for it where it has one.
function reason(error) {
  const inner = [error.cause, error.originalError, ...(error.errors || [])]
  const cause = inner.find(each => each instanceof Error)
  if (cause) return reason(cause)
  return error.type || error.message
}

async function main() {
  for await (const line of readline.createInterface({ input: process.stdin })) {
    process.stdout.write(JSON.stringify(await answer(line)) + '\n')
  }
  process.exit(0)
}

main()
